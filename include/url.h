/* url: where to connect. Layer 0.
 *
 *   [amqp[s]://][user[:password]@]host[:port][/address]
 *
 * Host may be an IPv6 address in brackets, or bare if it has two colons or more (then there is no
 * port). The address is everything after the first slash behind the host.
 */
#ifndef URL_H
#define URL_H

#include <stdbool.h>
#include <stddef.h>

#define URL_HOST_SIZE 256
#define URL_PORT_SIZE 6

/* Texts end with 0; an empty one was not given. */
struct url {
	bool secure; /* amqps */
	bool has_credentials;
	char host[URL_HOST_SIZE];
	char port[URL_PORT_SIZE]; /* digits, 1..5 */
	const char *address;      /* within the text that was parsed, NULL if there was no slash */
};

/* Returns NULL, or what is wrong (a constant text that never quotes a password). */
const char *url_parse(const char *text, struct url *url);

/* HOST:PORT alone, as in --listen; the port may be 0. */
const char *url_parse_host_port(const char *text, struct url *url);

#endif
