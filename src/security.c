#define _GNU_SOURCE
#include "security.h"

#include "tls_verdict.h"
#include "trace.h"

#include <proton/sasl.h>
#include <proton/session.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- TLS domains ---- */

/* With a CA of one's own the system's are not trusted as well. The library always loads those, from
 * where OpenSSL's environment says. */
static void forget_system_store(const char *ca)
{
	setenv("SSL_CERT_FILE", ca, 1);
	setenv("SSL_CERT_DIR", "/dev/null", 1);
}

static enum security_fault set_credentials(
	pn_ssl_domain_t *domain, const struct security_options *o)
{
	/* a pass phrase, even an empty one, keeps OpenSSL from asking for it */
	switch (pn_ssl_domain_set_credentials(domain, o->certificate, o->key, "")) {
	case 0: return SECURITY_GOOD;
	case -3: return SECURITY_BAD_CERTIFICATE;
	default: return tls_verdict_is_key(o->key) ? SECURITY_KEY_OF_ANOTHER : SECURITY_BAD_KEY;
	}
}

static enum security_fault set_up(pn_ssl_domain_t *domain, const struct security_options *o)
{
	pn_ssl_verify_mode_t mode = !o->verify ? PN_SSL_ANONYMOUS_PEER
		: o->listen                    ? PN_SSL_VERIFY_PEER
					       : PN_SSL_VERIFY_PEER_NAME;
	if (o->certificate) {
		enum security_fault fault = set_credentials(domain, o);
		if (fault)
			return fault;
	}
	if (o->ca && pn_ssl_domain_set_trusted_ca_db(domain, o->ca))
		return SECURITY_BAD_CA;
	/* a server tells its clients whom it trusts */
	if (pn_ssl_domain_set_peer_authentication(domain, mode, o->ca))
		return o->ca ? SECURITY_BAD_CA : SECURITY_BAD_LIBRARY;
	return SECURITY_GOOD;
}

/* One domain for all connections. */
enum security_fault security_create(struct security *s, const struct security_options *options)
{
	*s = (struct security){.options = *options};
	trace_start();
	if (!options->tls)
		return SECURITY_GOOD;
	if (!options->listen)
		tls_verdict_expect(options->name);
	if (options->ca)
		forget_system_store(options->ca);
	s->domain = pn_ssl_domain(options->listen ? PN_SSL_MODE_SERVER : PN_SSL_MODE_CLIENT);
	return s->domain ? set_up(s->domain, options) : SECURITY_BAD_LIBRARY;
}

/* The library keeps what open connections need. */
void security_destroy(struct security *s)
{
	if (s->domain)
		pn_ssl_domain_free(s->domain);
	s->domain = NULL;
}

/* ---- connections ---- */

/* The library makes a SASL layer of it when the transport is bound. */
void security_identify(const struct security *s, pn_connection_t *connection)
{
	if (s->options.user)
		pn_connection_set_user(connection, s->options.user);
	if (s->options.password)
		pn_connection_set_password(connection, s->options.password);
}

/* TLS below, SASL above it. */
void security_bind(const struct security *s, pn_transport_t *transport)
{
	const struct security_options *o = &s->options;
	if (s->domain) {
		pn_ssl_t *ssl = pn_ssl(transport);
		if (!o->listen)
			pn_ssl_set_peer_hostname(ssl, o->name);
		if (!ssl || pn_ssl_init(ssl, s->domain, NULL))
			fatalx(EXIT_INTERNAL, "TLS of a connection");
	}
	if (!o->mechanisms) {
		/* without a list, a client that names no mechanism at all ends the process */
		if (o->listen)
			pn_sasl_allowed_mechs(pn_sasl(transport), "ANONYMOUS EXTERNAL");
		return;
	}
	pn_sasl_allowed_mechs(pn_sasl(transport), o->mechanisms);
	pn_sasl_set_allow_insecure_mechs(pn_sasl(transport), o->insecure);
	pn_transport_require_auth(transport, o->listen);
}

/* ---- failures ---- */

static bool begins(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

/* Puts other words into F. The library's own name of a condition says nothing; AMQP's is kept if it
 * has one for what happened. */
static void rephrase(struct failure *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void rephrase(struct failure *f, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(f->description, sizeof f->description, format, arguments);
	va_end(arguments);
	if (strcmp(f->condition, "amqp:unauthorized-access"))
		*f->condition = '\0';
}

static void refuse(struct failure *f)
{
	if (f->code)
		f->code = EXIT_SECURITY;
}

static const char *mechanism_of(pn_transport_t *transport)
{
	const char *mechanism = transport ? pn_sasl_get_mech(pn_sasl(transport)) : NULL;
	return mechanism ? mechanism : "";
}

/* "Authentication failed [mech=PLAIN]" is all that the library says, whatever the reason. */
static void explain_authentication(
	const struct security *s, pn_transport_t *transport, struct failure *f)
{
	const char *mechanism = mechanism_of(transport), *user = s->options.user;
	pn_sasl_outcome_t outcome = transport ? pn_sasl_outcome(pn_sasl(transport)) : PN_SASL_AUTH;
	refuse(f);
	if (!*mechanism)
		rephrase(f, "the peer offers no SASL mechanism that may be used: %s",
			s->options.mechanisms);
	else if (outcome == PN_SASL_AUTH)
		rephrase(f, "the peer refused SASL %s%s%s", mechanism, user ? " of " : "",
			user ? user : "");
	else
		rephrase(f, "the peer could not answer SASL %s: %s error", mechanism,
			outcome == PN_SASL_TEMP ? "a temporary" : "an");
}

/* Whether SASL has begun, and not ended. */
static bool is_authenticating(const struct security *s, pn_transport_t *transport)
{
	return s->options.mechanisms && *mechanism_of(transport)
		&& pn_sasl_outcome(pn_sasl(transport)) != PN_SASL_OK;
}

/* The connection was closed before the peer has opened its own. */
static void explain_end(const struct security *s, pn_transport_t *transport, struct failure *f)
{
	if (is_authenticating(s, transport)) {
		rephrase(f, "the peer closed the connection instead of an answer to SASL %s",
			mechanism_of(transport));
		refuse(f);
	} else {
		rephrase(f, "the peer closed the connection before it opened its own%s",
			s->domain                       ? ""
				: s->options.mechanisms ? "; it may want TLS (amqps://)"
							: "; it may want SASL, or TLS (amqps://)");
	}
}

/* By whom, and why, is not known: it is no refusal. But our credentials may have been seen, so that
 * it is not one of the failures that another attempt is made after without being asked to. */
static void explain_reset(pn_transport_t *transport, struct failure *f)
{
	char error[sizeof f->description];
	snprintf(error, sizeof error, "%s", f->description);
	rephrase(f, "%.*s before an answer to SASL %s", 128, error, mechanism_of(transport));
}

/* The peer has begun with something else than a layer that we want. */
static void explain_layer(const struct security *s, struct failure *f, const char *got)
{
	const char *read = strchr(got, '\'');
	if (begins(got, "AMQP 1.0 layer")) {
		rephrase(f, "the peer does not speak SASL (--sasl-mechs none: without)");
		refuse(f);
	} else if (begins(got, "AMQP SASL layer")) {
		rephrase(f, "the peer insists on SASL, but --sasl-mechs is none");
		refuse(f);
	} else if (!s->domain && read && begins(read, "'\\x15\\x03")) {
		rephrase(f, "the peer speaks TLS (amqps://)");
		refuse(f);
	}
}

/* The library ends a failed handshake without an alert, and not it alone: what the peer has not
 * liked can be guessed at best. */
static void explain_cut(const struct security *s, pn_transport_t *transport, struct failure *f)
{
	uint64_t frames = !transport ? 0
		: s->options.listen  ? pn_transport_get_frames_output(transport)
				     : pn_transport_get_frames_input(transport);
	if (frames) { /* long after the handshake */
		snprintf(f->description, sizeof f->description, "connection aborted");
		return;
	}
	bool identified = transport && pn_ssl_get_remote_subject(pn_ssl(transport));
	f->cut_off = true;
	refuse(f);
	if (s->options.listen)
		rephrase(f,
			"the peer closed the connection during the TLS handshake; it may not "
			"accept our certificate");
	else if (identified)
		rephrase(f, "the peer closed the connection after the TLS handshake; it may %s",
			s->options.certificate ? "not accept our certificate"
					       : "want a certificate of ours");
	else
		rephrase(f,
			"the peer closed the connection during the TLS handshake; it may not "
			"speak TLS");
}

static void explain_tls(const struct security *s, pn_transport_t *transport, struct failure *f)
{
	char words[sizeof f->description];
	switch (tls_verdict_explain(f->description, words, sizeof words)) {
	case TLS_NO_MATTER: break;
	case TLS_CUT_OFF: explain_cut(s, transport, f); break;
	case TLS_FAILED: rephrase(f, "%s", words); refuse(f);
	}
}

/* What the library says of peers that do not do what a listener asks for. */
static void explain_omission(struct failure *f)
{
	if (begins(f->description, "Client connection unencrypted"))
		rephrase(f, "the peer does not use TLS");
	else if (begins(f->description, "Client skipped authentication"))
		rephrase(f, "the peer does not use SASL");
}

/* A peer that closes without having read all that we have sent resets the connection. */
static bool is_reset(const struct failure *f)
{
	return !strcmp(f->condition, "proton:io")
		&& (strstr(f->description, "reset by peer")
			|| strstr(f->description, "Broken pipe"));
}

/* Of a connection that we have made. */
static void explain_ours(const struct security *s, pn_transport_t *transport, struct failure *f)
{
	static const char GOT[] = "protocol header got: ";
	const char *d = f->description, *got = strstr(d, GOT);
	bool unheard = transport
		&& (pn_connection_state(pn_transport_connection(transport)) & PN_REMOTE_UNINIT);
	if (s->options.mechanisms && begins(d, "Authentication failed [mech="))
		explain_authentication(s, transport, f);
	else if (begins(d, "Expected ") && got)
		explain_layer(s, f, got + strlen(GOT));
	else if (unheard && strstr(d, "connection aborted"))
		explain_end(s, transport, f);
	else if (unheard && is_reset(f) && is_authenticating(s, transport))
		explain_reset(transport, f);
	else if (unheard && is_reset(f) && s->domain)
		explain_cut(s, transport, f);
}

/* By the library's words. */
void security_explain(const struct security *s, pn_transport_t *transport, struct failure *failure)
{
	char *consequence = strstr(failure->description, " (SSL Failure: ");
	if (consequence)
		*consequence = '\0'; /* of the socket's error before it */
	explain_tls(s, transport, failure);
	if (s->options.listen)
		explain_omission(failure);
	else
		explain_ours(s, transport, failure);
	if (!strcmp(failure->condition, "amqp:unauthorized-access"))
		refuse(failure);
}

/* ---- what came of it ---- */

/* The library's functions make layers that are not there: only what was asked for is asked. */
void security_describe(const struct security *s, pn_link_t *link, struct security_state *state)
{
	pn_connection_t *connection = pn_session_connection(pn_link_session(link));
	pn_transport_t *transport = pn_connection_transport(connection);
	*state = (struct security_state){0};
	if (!transport)
		return;
	if (s->domain) {
		pn_ssl_t *ssl = pn_ssl(transport);
		const char *protocol = tls_verdict_protocol();
		pn_ssl_get_protocol_name(ssl, state->protocol, sizeof state->protocol);
		pn_ssl_get_cipher_name(ssl, state->cipher, sizeof state->cipher);
		if (protocol)
			snprintf(state->protocol, sizeof state->protocol, "%s", protocol);
	}
	const char *mechanism = s->options.mechanisms ? pn_sasl_get_mech(pn_sasl(transport)) : NULL;
	snprintf(state->mechanism, sizeof state->mechanism, "%s", mechanism ? mechanism : "");
}
