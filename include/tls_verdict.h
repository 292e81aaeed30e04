/* tls_verdict: what OpenSSL knows of a TLS handshake, and libqpid-proton does not tell. Layer 3,
 * for security.c alone.
 *
 * The library says no more of a certificate that it does not accept than "certificate verify
 * failed", and compares names only, not IP addresses. This module defines SSL_CTX_set_verify()
 * itself: the dynamic linker takes a program's own function before OpenSSL's, so that the library
 * calls ours, which puts a callback of ours around the library's. Should a version of the library
 * set its callback in another way, certificates are verified as before, by the library alone; then
 * only the details are lost.
 */
#ifndef TLS_VERDICT_H
#define TLS_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

/* Whom to expect, by all connections that are made: HOST, a name or an IP address, which must stay.
 * An IP address is also accepted if the certificate has it as such, and is not asked for in the
 * handshake, where only names may be. Before the first TLS domain is made. */
void tls_verdict_expect(const char *host);

/* The version of TLS that this thread's last handshake agreed upon; NULL: none has. */
const char *tls_verdict_protocol(void);

/* Whether there is a private key in file NAME that can be read without a pass phrase. */
bool tls_verdict_is_key(const char *name);

enum tls_verdict {
	TLS_NO_MATTER, /* it is of something else */
	TLS_CUT_OFF,   /* the connection was closed, without TLS's farewell */
	TLS_FAILED,
};

/* Puts DESCRIPTION, a condition's, in words; they are the caller's to show only if TLS failed. */
enum tls_verdict tls_verdict_explain(const char *description, char *text, size_t size);

#endif
