/* url: where to connect, and as whom. Layer 0.
 *
 *   [amqp[s]://][user[:password]@]host[:port][/address]
 *
 * Host is a name, an IPv4 address, or an IPv6 address: in brackets, or bare, then without a port.
 * An IPv6 address may have a scope, behind % or %25. The address is everything after the first
 * slash behind the host.
 *
 * User and password may be percent-encoded (%XX; a % without two hex digits stays), or hold any
 * character as it is: the host begins behind the first @ that is followed by host[:port] up to a
 * slash or the end, or at once if what stands before the first slash is host[:port]. So what must
 * be encoded is a password that itself looks like @host/ or, as a whole, like a port and a slash;
 * and : in a user.
 */
#ifndef URL_H
#define URL_H

#include <stdbool.h>
#include <stddef.h>

#define URL_HOST_SIZE     256
#define URL_PORT_SIZE     6
#define URL_USER_SIZE     256
#define URL_PASSWORD_SIZE 4096

/* Texts end with 0; an empty one was not given. */
struct url {
	bool has_scheme;
	bool secure;                                           /* amqps */
	char user[URL_USER_SIZE], password[URL_PASSWORD_SIZE]; /* decoded */
	char host[URL_HOST_SIZE];
	char port[URL_PORT_SIZE]; /* digits, 1..5 */
	const char *address;      /* within the text that was parsed, NULL if there was no slash */
};

/* Returns NULL, or what is wrong (a constant text that never quotes a password). */
const char *url_parse(const char *text, struct url *url);

/* [amqp[s]://]HOST:PORT alone, as in --listen; the port may be 0. */
const char *url_parse_host_port(const char *text, struct url *url);

/* The port of a scheme, as IANA has it. */
const char *url_default_port(bool secure);

/* Takes a password and the colon before it out of TEXT, which becomes shorter; what it was is
 * overwritten. A text that url_parse() refuses is left alone. */
void url_remove_password(char *text);

#endif
