/* security: TLS and SASL of connections: who we are, who the peer must be, and what it means if one
 * of the two is refused. Layer 3.
 *
 * One struct security serves all connections of a process, in any thread, once it is created.
 */
#ifndef SECURITY_H
#define SECURITY_H

#include "fatal.h"

#include <proton/connection.h>
#include <proton/link.h>
#include <proton/ssl.h>
#include <proton/transport.h>
#include <stdbool.h>
#include <stddef.h>

#define SECURITY_MECHANISMS_SIZE 256

/* Texts are the owner's and stay; NULL where there is none. */
struct security_options {
	bool listen;
	bool tls;
	const char *user, *password; /* when connecting; a password only with a user */
	/* names separated by a space: when connecting, what may be used, and NULL is no SASL at
	 * all; when listening, what is offered, and NULL is no obligation to use SASL */
	const char *mechanisms;
	bool insecure; /* a password may be sent without TLS */

	/* of TLS; files are PEM */
	const char *ca; /* whoever signs peers' certificates; NULL: those of the system */
	const char *certificate, *key;
	const char *name; /* of the peer, when connecting */
	bool verify;      /* the peer's certificate */
};

struct security {
	struct security_options options;
	pn_ssl_domain_t *domain; /* NULL without TLS */
};

/* What a TLS domain could not be made of. */
enum security_fault {
	SECURITY_GOOD,
	SECURITY_BAD_CA,
	SECURITY_BAD_CERTIFICATE,
	SECURITY_BAD_KEY,
	SECURITY_KEY_OF_ANOTHER, /* certificate */
	SECURITY_BAD_LIBRARY,
};

/* Prepares S, before there are threads. security_destroy() undoes it, after the last connection. */
enum security_fault security_create(struct security *s, const struct security_options *options);
void security_destroy(struct security *s);

/* Says who we are on a CONNECTION that is to be made, before it has a transport. */
void security_identify(const struct security *s, pn_connection_t *connection);

/* Sets up a TRANSPORT that was bound to its connection, before its frame size is set: the library
 * would allocate a buffer of that size for TLS. */
void security_bind(const struct security *s, pn_transport_t *transport);

/* If FAILURE, in the library's words, was one of TLS or SASL: puts it into better ones, and makes
 * its code EXIT_SECURITY, if it has one. TRANSPORT is where it happened, or NULL. */
void security_explain(const struct security *s, pn_transport_t *transport, struct failure *failure);

/* What protects a connection that has opened. Texts are empty where there is none. */
struct security_state {
	char protocol[16], cipher[64]; /* of TLS */
	char mechanism[32];            /* of SASL */
};
void security_describe(const struct security *s, pn_link_t *link, struct security_state *state);

#endif
