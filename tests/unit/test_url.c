/* url: how URLs fall into parts, and which are refused. */
#include "url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))

struct parts {
	const char *text;
	bool secure;
	const char *user, *host, *port, *address;
};

/* Every part of every row. */
static void check_parts(const struct parts *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct parts *p = &rows[i];
		struct url url;
		const char *error = url_parse(p->text, &url);
		if (error)
			fail_msg("\"%s\" %s", p->text, error);
		if (url.secure != p->secure || url.has_scheme != !strncmp(p->text, "amqp", 4))
			fail_msg("\"%s\": scheme %d, secure %d", p->text, url.has_scheme,
				url.secure);
		assert_string_equal(url.user, p->user ? p->user : "");
		assert_string_equal(url.host, p->host);
		assert_string_equal(url.port, p->port);
		if (p->address) {
			assert_non_null(url.address);
			assert_string_equal(url.address, p->address);
		} else {
			assert_null(url.address);
		}
	}
}

/* None may be accepted. */
static void check_refused(const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct url url;
		if (!url_parse(texts[i], &url))
			fail_msg("\"%s\" was accepted: host \"%s\", port \"%s\"", texts[i],
				url.host, url.port);
	}
}

/* What was not given is empty. */
static void test_parts_of_a_url(void **state)
{
	(void)state;
	static const struct parts ROWS[] = {
		{"host", false, NULL, "host", "", NULL},
		{"host:5672", false, NULL, "host", "5672", NULL},
		{"host/", false, NULL, "host", "", ""},
		{"host/queue", false, NULL, "host", "", "queue"},
		{"host:1/queue", false, NULL, "host", "1", "queue"},
		{"amqp://host", false, NULL, "host", "", NULL},
		{"amqps://host", true, NULL, "host", "", NULL},
		{"amqp://127.0.0.1:5672/ppair", false, NULL, "127.0.0.1", "5672", "ppair"},
		{"amqps://broker.example.org:65535/a", true, NULL, "broker.example.org", "65535",
			"a"},
		{"host:0", false, NULL, "host", "0", NULL},
		{"host:00080", false, NULL, "host", "00080", NULL},
	};
	check_parts(ROWS, LENGTH(ROWS));
}

/* Whatever characters it has. */
static void test_the_address_is_all_behind_the_first_slash(void **state)
{
	(void)state;
	static const struct parts ROWS[] = {
		{"host/a/b/c", false, NULL, "host", "", "a/b/c"},
		{"amqp://host//a", false, NULL, "host", "", "/a"},
		{"host:1/a:b", false, NULL, "host", "1", "a:b"},
		{"host/user@example.org", false, NULL, "host", "", "user@example.org"},
		{"host/a?b=c#d e", false, NULL, "host", "", "a?b=c#d e"},
		{"amqp://host/topic://news", false, NULL, "host", "", "topic://news"},
	};
	check_parts(ROWS, LENGTH(ROWS));
}

/* Brokers have addresses such as topic://news; the scheme comes before the host alone. */
static void test_an_address_with_a_scheme_is_no_scheme_of_the_url(void **state)
{
	(void)state;
	static const struct parts ROWS[] = {
		{"host/topic://news", false, NULL, "host", "", "topic://news"},
		{"host:5672/amqp://x", false, NULL, "host", "5672", "amqp://x"},
	};
	check_parts(ROWS, LENGTH(ROWS));
}

/* With brackets, or bare and without a port. */
static void test_ipv6_hosts(void **state)
{
	(void)state;
	static const struct parts ROWS[] = {
		{"[::1]", false, NULL, "::1", "", NULL},
		{"[::1]:5672", false, NULL, "::1", "5672", NULL},
		{"[::1]/q", false, NULL, "::1", "", "q"},
		{"amqp://[fe80::1%eth0]:1/q", false, NULL, "fe80::1%eth0", "1", "q"},
		{"amqps://u@[2001:db8::2]:5671/q", true, "u", "2001:db8::2", "5671", "q"},
		{"[fe80::1%25eth0]", false, NULL, "fe80::1%eth0", "", NULL},
		{"[fe80::1%2]:1", false, NULL, "fe80::1%2", "1", NULL},
		{"[fe80::1%25]:1", false, NULL, "fe80::1%25", "1", NULL},
		{"fe80::1%eth0.5/q", false, NULL, "fe80::1%eth0.5", "", "q"},
		{"::ffff:127.0.0.1", false, NULL, "::ffff:127.0.0.1", "", NULL},
		{"::1", false, NULL, "::1", "", NULL},
		{"::", false, NULL, "::", "", NULL},
		{"2001:db8::2/q", false, NULL, "2001:db8::2", "", "q"},
		{"amqp://::1/q", false, NULL, "::1", "", "q"},
	};
	static const char *const REFUSED[] = {"[::1", "[]", "[]:1", "[::1]5672", "[::1]x:1",
		"[::1]:", "[::1]:x", "[:: 1]:1", "[host]", "[127.0.0.1]:1", "[::1::2]", "[::1%]",
		"[::1%a/b]", "::1%", "a::g", "host:1:2", "1:2:3:4:5:6:7:8:9"};
	check_parts(ROWS, LENGTH(ROWS));
	check_refused(REFUSED, LENGTH(REFUSED));
}

/* Those of every row: as they were written, then decoded. */
static void test_user_and_password(void **state)
{
	(void)state;
	static const struct {
		const char *text, *user, *password, *host, *port, *address;
	} ROWS[] = {
		{"user@host", "user", "", "host", "", NULL},
		{"user:secret@host:1/q", "user", "secret", "host", "1", "q"},
		{"amqps://user:secret@[::1]:1", "user", "secret", "::1", "1", NULL},
		{"user:sec@ret@host:1/q", "user", "sec@ret", "host", "1", "q"},
		{"user:a@b:c/d#e%f?g@127.0.0.1:1/q", "user", "a@b:c/d#e%f?g", "127.0.0.1", "1",
			"q"},
		{"amqp://user:[:]x@[::1]:1", "user", "[:]x", "::1", "1", NULL},
		{"user:a/b@host", "user", "a/b", "host", "", NULL},
		{"amqp://user://@host", "user", "//", "host", "", NULL},
		{"user:@@host", "user", "@", "host", "", NULL},
		{"user:a:b@host", "user", "a:b", "host", "", NULL},
		{"user: a\tb@host", "user", " a\tb", "host", "", NULL},
		{"guest@example.org:x@host", "guest@example.org", "x", "host", "", NULL},
		{"us%3Aer:%40%3a%2F%23%25%3f@host/a@b%40", "us:er", "@:/#%?", "host", "", "a@b%40"},
		{"%75ser:100%@host", "user", "100%", "host", "", NULL},
		{"user:%zz%4@host", "user", "%zz%4", "host", "", NULL},
		{"user:%C3%A9@host", "user", "\xc3\xa9", "host", "", NULL},
		/* what looks like a host ends it: these must be encoded */
		{"user:p@ss/word@host", "user", "p", "ss", "", "word@host"},
		{"user:12/34@host", "", "", "user", "12", "34@host"},
		{"host/user:secret@example.org", "", "", "host", "", "user:secret@example.org"},
		{"user:secret@host/a@b", "user", "secret", "host", "", "a@b"},
	};
	for (size_t i = 0; i < LENGTH(ROWS); i++) {
		struct url url;
		const char *error = url_parse(ROWS[i].text, &url);
		if (error)
			fail_msg("\"%s\" %s", ROWS[i].text, error);
		assert_string_equal(url.user, ROWS[i].user);
		assert_string_equal(url.password, ROWS[i].password);
		assert_string_equal(url.host, ROWS[i].host);
		assert_string_equal(url.port, ROWS[i].port);
		assert_string_equal(
			url.address ? url.address : "-", ROWS[i].address ? ROWS[i].address : "-");
	}
}

/* As it is shown from then on; all that it was is overwritten. */
static void test_passwords_are_removed(void **state)
{
	(void)state;
	static const char *const ROWS[][2] = {
		{"amqp://user:hunter2@host:1/q", "amqp://user@host:1/q"},
		{"user:hunter2@host", "user@host"},
		{"user:hun@t:e/r2@host/a:b@c", "user@host/a:b@c"},
		{"amqps://u%3As:hunter2%40@[::1]", "amqps://u%3As@[::1]"},
		{"user@host/a:b@c", "user@host/a:b@c"},
		{"host:1/topic://a:b@c", "host:1/topic://a:b@c"},
		{"user:hunter2@host:x", "user:hunter2@host:x"}, /* not a URL */
	};
	for (size_t i = 0; i < LENGTH(ROWS); i++) {
		char text[64] = "", expected[64] = "";
		strcpy(text, ROWS[i][0]);
		strcpy(expected, ROWS[i][1]);
		url_remove_password(text);
		assert_memory_equal(text, expected, sizeof text);
	}
}

/* Nothing is guessed. */
static void test_refused_urls(void **state)
{
	(void)state;
	static const char *const REFUSED[] = {"", "/", "/q", ":5672", "amqp://", "amqp:///q",
		"amqp://:5672", "http://host", "amqpss://host", "AMQP://host", "amq://host",
		"://host", " amqp://host", "user@", "user:secret@:1", "user@/q", "host:", "host:/q",
		"host:x", "host:12x", "host:-1", "host:+1", "@host", ":secret@host", "user:@host",
		"us%00er@host", "user:%00@host", "ho%73t", "host?x", "host: 1", "host:65536",
		"host:99999", "host:123456", "host:000001", "ho st", "host\n", "\thost", "host:1 "};
	check_refused(REFUSED, LENGTH(REFUSED));
}

/* Not cut. */
static void test_a_host_longer_than_its_room_is_refused(void **state)
{
	(void)state;
	char text[2 * URL_HOST_SIZE];
	struct url url;
	memset(text, 'h', sizeof text);
	text[URL_HOST_SIZE - 1] = '\0';
	assert_null(url_parse(text, &url));
	assert_string_equal(url.host, text);
	text[URL_HOST_SIZE - 1] = 'h';
	text[URL_HOST_SIZE] = '\0';
	assert_non_null(url_parse(text, &url));
	strcpy(text + URL_HOST_SIZE, ":5672/q");
	assert_non_null(url_parse(text, &url));
}

/* Nothing else is allowed there. */
static void test_host_and_port_alone(void **state)
{
	(void)state;
	static const struct {
		const char *text, *host, *port;
	} ACCEPTED[] = {{"127.0.0.1:0", "127.0.0.1", "0"}, {"host:5672", "host", "5672"},
		{"[::1]:65535", "::1", "65535"}, {"0.0.0.0:1", "0.0.0.0", "1"},
		{"amqp://host:0", "host", "0"}, {"amqps://[::]:0", "::", "0"}};
	static const char *const REFUSED[] = {"", "host", ":0", "::1", "[::1]", "host:", "host:x",
		"host:65536", "host:1/q", "http://host:1", "amqps://host", "user@host:1", "ho st:1",
		"[::1]:"};
	struct url url;
	for (size_t i = 0; i < LENGTH(ACCEPTED); i++) {
		assert_null(url_parse_host_port(ACCEPTED[i].text, &url));
		assert_string_equal(url.host, ACCEPTED[i].host);
		assert_string_equal(url.port, ACCEPTED[i].port);
		assert_null(url.address);
		assert_int_equal(url.secure, !strncmp(ACCEPTED[i].text, "amqps:", 6));
	}
	assert_string_equal(url_default_port(true), "5671");
	assert_string_equal(url_default_port(false), "5672");
	for (size_t i = 0; i < LENGTH(REFUSED); i++)
		if (!url_parse_host_port(REFUSED[i], &url))
			fail_msg("\"%s\" was accepted", REFUSED[i]);
}

/* Whatever goes wrong behind it, and wherever one forgot a character. */
static void test_errors_never_quote_a_password(void **state)
{
	(void)state;
	static const char *const REFUSED[] = {"user:hunter2@", "user:hunter2@:1",
		"user:hunter2@host:x", "user:hunter2@host:65536", "user:hunter2@ho st",
		"user:hunter2@[::1", "user:hunter2@[::1]x", "http://user:hunter2@host",
		"amqp://user:hunter2@/q", "amqp://user:hunter2/x@", "amqp://user:hunter2",
		"amqp://:hunter2@host", "amqp://user:hunter2%00@host"};
	for (size_t i = 0; i < LENGTH(REFUSED); i++) {
		struct url url;
		const char *error = url_parse(REFUSED[i], &url);
		if (!error)
			fail_msg("\"%s\" was accepted", REFUSED[i]);
		assert_null(strstr(error, "hunter2"));
		/* and the text is constant, not a copy */
		assert_ptr_equal(error, url_parse(REFUSED[i], &url));
	}
}

/* Nor cut: tokens that serve as passwords are long. */
static void test_long_users_and_passwords(void **state)
{
	(void)state;
	static char text[URL_PASSWORD_SIZE + URL_USER_SIZE + 16];
	struct url url;
	memset(text, 'x', sizeof text);
	text[URL_USER_SIZE - 1] = ':';
	strcpy(text + URL_USER_SIZE + URL_PASSWORD_SIZE - 1, "@host");
	assert_null(url_parse(text, &url));
	assert_int_equal(strlen(url.user), URL_USER_SIZE - 1);
	assert_int_equal(strlen(url.password), URL_PASSWORD_SIZE - 1);
	text[URL_USER_SIZE - 1] = 'x';
	text[URL_USER_SIZE] = ':';
	assert_non_null(url_parse(text, &url));
	text[URL_USER_SIZE] = 'x';
	text[1] = ':';
	assert_non_null(url_parse(text, &url));
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_of_a_url),
		cmocka_unit_test(test_the_address_is_all_behind_the_first_slash),
		cmocka_unit_test(test_an_address_with_a_scheme_is_no_scheme_of_the_url),
		cmocka_unit_test(test_ipv6_hosts),
		cmocka_unit_test(test_user_and_password),
		cmocka_unit_test(test_passwords_are_removed),
		cmocka_unit_test(test_long_users_and_passwords),
		cmocka_unit_test(test_refused_urls),
		cmocka_unit_test(test_a_host_longer_than_its_room_is_refused),
		cmocka_unit_test(test_host_and_port_alone),
		cmocka_unit_test(test_errors_never_quote_a_password),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
