/* tls_verdict: what the library says of TLS, put in words. */
#include "tls_verdict.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* As libqpid-proton puts it. */
static const char *description(int library, int reason)
{
	static char text[256];
	char error[200];
	ERR_error_string_n(ERR_PACK(library, 0, reason), error, sizeof error);
	snprintf(text, sizeof text, "SSL Failure: %s", error);
	return text;
}

static void check(int library, int reason, const char *expected)
{
	char words[128] = "";
	assert_int_equal(
		tls_verdict_explain(description(library, reason), words, sizeof words), TLS_FAILED);
	assert_string_equal(words, expected);
}

/* What comes of OpenSSL itself. */
static void test_reasons(void **state)
{
	(void)state;
	OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS, NULL);
	check(ERR_LIB_SSL, SSL_R_WRONG_VERSION_NUMBER, "the peer does not speak TLS");
	check(ERR_LIB_SSL, SSL_R_HTTP_REQUEST, "the peer does not speak TLS");
	check(ERR_LIB_SSL, SSL_R_UNSUPPORTED_PROTOCOL, "no version of TLS in common with the peer");
	check(ERR_LIB_SSL, SSL_R_NO_SHARED_CIPHER, "no cipher in common with the peer");
	check(ERR_LIB_SSL, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "the peer has no certificate");
	check(ERR_LIB_SSL, SSL_R_CERTIFICATE_VERIFY_FAILED,
		"the peer's certificate is not accepted");
	check(ERR_LIB_SSL, SSL_R_LENGTH_MISMATCH, "TLS failed: length mismatch");
}

/* What the peer has sent. */
static void test_alerts(void **state)
{
	(void)state;
	tls_verdict_expect("broker.example.org");
	check(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA,
		"the peer does not accept our certificate: unknown CA");
	check(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED,
		"the peer wants a certificate of ours");
	check(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + SSL_AD_PROTOCOL_VERSION,
		"no version of TLS in common with the peer");
	check(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + SSL_AD_UNRECOGNIZED_NAME,
		"the peer does not know the name broker.example.org");
	check(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + SSL_AD_INTERNAL_ERROR,
		"TLS failed at the peer: internal error");
}

/* What our own callback has put there: an error and a depth. */
static void test_certificates(void **state)
{
	(void)state;
	tls_verdict_expect("fe80::1%eth0");
	check(ERR_LIB_USER, X509_V_ERR_HOSTNAME_MISMATCH,
		"the peer's certificate is not for fe80::1");
	check(ERR_LIB_USER, X509_V_ERR_CERT_HAS_EXPIRED,
		"the peer's certificate is not accepted: certificate has expired");
	check(ERR_LIB_USER, X509_V_ERR_CERT_HAS_EXPIRED | 2 << 12,
		"an issuer of the peer's certificate is not accepted: certificate has expired");
}

/* A connection that ends without a farewell, and other failures. */
static void test_what_is_not_of_tls(void **state)
{
	(void)state;
	char words[8] = "";
	const char *eof = description(ERR_LIB_SSL, SSL_R_UNEXPECTED_EOF_WHILE_READING);
	assert_int_equal(tls_verdict_explain(eof, words, sizeof words), TLS_CUT_OFF);
	assert_int_equal(tls_verdict_explain("SSL Failure: Unknown error", words, sizeof words),
		TLS_CUT_OFF);
	assert_int_equal(
		tls_verdict_explain("connection aborted", words, sizeof words), TLS_NO_MATTER);
	assert_int_equal(tls_verdict_explain("", words, sizeof words), TLS_NO_MATTER);
	assert_string_equal(words, "");
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_alerts),
		cmocka_unit_test(test_certificates),
		cmocka_unit_test(test_what_is_not_of_tls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
