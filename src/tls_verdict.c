#define _GNU_SOURCE
#include "tls_verdict.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Why a certificate was not accepted is put into OpenSSL's queue of errors, as one of a user's: the
 * library puts the number of the first into the condition, so that it stays with its connection. */
#define REASON_DEPTH_SHIFT 12 /* of the certificate's distance from the peer's own */
#define REASON_ERROR_MASK  ((1 << REASON_DEPTH_SHIFT) - 1)

static char expected[256];
static bool expected_is_address;
static SSL_verify_cb library_callback;
static _Thread_local const char *last_protocol;

/* An address's scope is nothing that a certificate could have. */
void tls_verdict_expect(const char *host)
{
	snprintf(expected, sizeof expected, "%.*s", (int)strcspn(host, "%"), host);
	ASN1_OCTET_STRING *address = a2i_IPADDRESS(expected);
	expected_is_address = address;
	ASN1_OCTET_STRING_free(address);
	ERR_clear_error();
}

/* Called with each certificate of a chain, whether it is GOOD so far. The library's own callback
 * refuses the last of a good chain only if it does not have the name. */
static int verify(int good, X509_STORE_CTX *context)
{
	int accepted = library_callback(good, context);
	if (accepted)
		return accepted;
	if (good && expected_is_address
		&& X509_check_ip_asc(X509_STORE_CTX_get_current_cert(context), expected, 0) == 1) {
		X509_STORE_CTX_set_error(context, X509_V_OK);
		return 1;
	}
	if (good)
		X509_STORE_CTX_set_error(context, X509_V_ERR_HOSTNAME_MISMATCH);
	ERR_clear_error();
	ERR_raise(ERR_LIB_USER,
		X509_STORE_CTX_get_error(context)
			| X509_STORE_CTX_get_error_depth(context) << REASON_DEPTH_SHIFT);
	return 0;
}

/* An address is not asked for (RFC 6066, section 3): some peers refuse that. */
static void watch(const SSL *connection, int where, int value)
{
	(void)value;
	if (where & SSL_CB_HANDSHAKE_START && expected_is_address && !SSL_is_server(connection))
		SSL_set_tlsext_host_name((SSL *)connection, NULL);
	if (where & SSL_CB_HANDSHAKE_DONE)
		last_protocol = SSL_get_version(connection);
}

/* In place of OpenSSL's: see the header. */
void SSL_CTX_set_verify(SSL_CTX *context, int mode, SSL_verify_cb callback)
{
	void (*real)(SSL_CTX *, int, SSL_verify_cb);
	*(void **)&real = dlsym(RTLD_NEXT, "SSL_CTX_set_verify");
	if (callback)
		library_callback = callback;
	SSL_CTX_set_info_callback(context, watch);
	real(context, mode, callback ? verify : NULL);
}

/* The library knows the cipher's first version only. */
const char *tls_verdict_protocol(void)
{
	return last_protocol;
}

static int no_pass_phrase(char *to, int size, int writing, void *context)
{
	(void)to, (void)size, (void)writing, (void)context;
	return 0;
}

/* Whether it could be read alone. */
bool tls_verdict_is_key(const char *name)
{
	FILE *file = fopen(name, "re");
	if (!file)
		return false;
	EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, no_pass_phrase, NULL);
	bool is_key = key;
	EVP_PKEY_free(key);
	fclose(file);
	ERR_clear_error();
	return is_key;
}

static void explain_certificate(int reason, char *text, size_t size)
{
	int error = reason & REASON_ERROR_MASK;
	if (error == X509_V_ERR_HOSTNAME_MISMATCH)
		snprintf(text, size, "the peer's certificate is not for %s", expected);
	else
		snprintf(text, size, "%s is not accepted: %s",
			reason >> REASON_DEPTH_SHIFT ? "an issuer of the peer's certificate"
						     : "the peer's certificate",
			X509_verify_cert_error_string(error));
}

/* What the peer has said. */
static void explain_alert(int alert, char *text, size_t size)
{
	const char *description = SSL_alert_desc_string_long(alert);
	switch (alert) {
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_UNKNOWN_CA:
	case SSL_AD_ACCESS_DENIED:
		snprintf(text, size, "the peer does not accept our certificate: %s", description);
		break;
	case SSL_AD_CERTIFICATE_REQUIRED:
		snprintf(text, size, "the peer wants a certificate of ours");
		break;
	case SSL_AD_HANDSHAKE_FAILURE:
		snprintf(text, size,
			"the peer refused TLS: no cipher in common, or it wants a certificate of "
			"ours");
		break;
	case SSL_AD_PROTOCOL_VERSION:
		snprintf(text, size, "no version of TLS in common with the peer");
		break;
	case SSL_AD_UNRECOGNIZED_NAME:
		snprintf(text, size, "the peer does not know the name %s", expected);
		break;
	default: snprintf(text, size, "TLS failed at the peer: %s", description);
	}
}

/* What we have noticed. */
static void explain_reason(int reason, const char *description, char *text, size_t size)
{
	switch (reason) {
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST: snprintf(text, size, "the peer does not speak TLS"); break;
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_NO_PROTOCOLS_AVAILABLE:
		snprintf(text, size, "no version of TLS in common with the peer");
		break;
	case SSL_R_NO_SHARED_CIPHER:
		snprintf(text, size, "no cipher in common with the peer");
		break;
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		snprintf(text, size, "the peer has no certificate");
		break;
	case SSL_R_CERTIFICATE_VERIFY_FAILED: /* the reason is lost */
		snprintf(text, size, "the peer's certificate is not accepted");
		break;
	default: snprintf(text, size, "TLS failed: %s", description);
	}
}

/* "SSL Failure: error:0A000086:SSL routines::certificate verify failed" */
enum tls_verdict tls_verdict_explain(const char *description, char *text, size_t size)
{
	static const char BEGINS[] = "SSL Failure: ", NUMBER[] = "error:";
	if (strncmp(description, BEGINS, strlen(BEGINS)))
		return TLS_NO_MATTER;
	description += strlen(BEGINS);
	if (strncmp(description, NUMBER, strlen(NUMBER)))
		return TLS_CUT_OFF; /* OpenSSL had nothing to say */
	unsigned long error = strtoul(description + strlen(NUMBER), NULL, 16);
	int library = ERR_GET_LIB(error), reason = ERR_GET_REASON(error);
	const char *words = ERR_reason_error_string(error);
	if (library == ERR_LIB_SSL && reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return TLS_CUT_OFF;
	if (library == ERR_LIB_USER)
		explain_certificate(reason, text, size);
	else if (library == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET)
		explain_alert(reason - SSL_AD_REASON_OFFSET, text, size);
	else
		explain_reason(library == ERR_LIB_SSL ? reason : 0, words ? words : description,
			text, size);
	return TLS_FAILED;
}
