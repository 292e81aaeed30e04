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
	bool secure, has_credentials;
	const char *host, *port, *address;
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
		if (url.secure != p->secure || url.has_credentials != p->has_credentials)
			fail_msg("\"%s\": secure %d, credentials %d", p->text, url.secure,
				url.has_credentials);
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
		{"host", false, false, "host", "", NULL},
		{"host:5672", false, false, "host", "5672", NULL},
		{"host/", false, false, "host", "", ""},
		{"host/queue", false, false, "host", "", "queue"},
		{"host:1/queue", false, false, "host", "1", "queue"},
		{"amqp://host", false, false, "host", "", NULL},
		{"amqps://host", true, false, "host", "", NULL},
		{"amqp://127.0.0.1:5672/ppair", false, false, "127.0.0.1", "5672", "ppair"},
		{"amqps://broker.example.org:65535/a", true, false, "broker.example.org", "65535",
			"a"},
		{"host:0", false, false, "host", "0", NULL},
		{"host:00080", false, false, "host", "00080", NULL},
		{"amqp", false, false, "amqp", "", NULL},
		{"amqp:1", false, false, "amqp", "1", NULL},
	};
	check_parts(ROWS, LENGTH(ROWS));
}

/* Whatever characters it has. */
static void test_the_address_is_all_behind_the_first_slash(void **state)
{
	(void)state;
	static const struct parts ROWS[] = {
		{"host/a/b/c", false, false, "host", "", "a/b/c"},
		{"amqp://host//a", false, false, "host", "", "/a"},
		{"host:1/a:b", false, false, "host", "1", "a:b"},
		{"host/user@example.org", false, false, "host", "", "user@example.org"},
		{"host/a?b=c#d e", false, false, "host", "", "a?b=c#d e"},
		{"amqp://host/topic://news", false, false, "host", "", "topic://news"},
	};
	check_parts(ROWS, LENGTH(ROWS));
}

/* Brokers have addresses such as topic://news; the scheme comes before the host alone. */
static void test_an_address_with_a_scheme_is_no_scheme_of_the_url(void **state)
{
	(void)state;
	static const struct parts ROWS[] = {
		{"host/topic://news", false, false, "host", "", "topic://news"},
		{"host:5672/amqp://x", false, false, "host", "5672", "amqp://x"},
	};
	check_parts(ROWS, LENGTH(ROWS));
}

/* With brackets, or bare and without a port. */
static void test_ipv6_hosts(void **state)
{
	(void)state;
	static const struct parts ROWS[] = {
		{"[::1]", false, false, "::1", "", NULL},
		{"[::1]:5672", false, false, "::1", "5672", NULL},
		{"[::1]/q", false, false, "::1", "", "q"},
		{"amqp://[fe80::1%eth0]:1/q", false, false, "fe80::1%eth0", "1", "q"},
		{"amqps://u@[2001:db8::2]:5671/q", true, true, "2001:db8::2", "5671", "q"},
		{"::1", false, false, "::1", "", NULL},
		{"::", false, false, "::", "", NULL},
		{"2001:db8::2/q", false, false, "2001:db8::2", "", "q"},
		{"amqp://::1/q", false, false, "::1", "", "q"},
	};
	static const char *const REFUSED[] = {
		"[::1", "[]", "[]:1", "[::1]5672", "[::1]x:1", "[::1]:", "[::1]:x", "[:: 1]:1"};
	check_parts(ROWS, LENGTH(ROWS));
	check_refused(REFUSED, LENGTH(REFUSED));
}

/* Passwords may hold @ and :. */
static void test_credentials_are_noticed_and_left_out(void **state)
{
	(void)state;
	static const struct parts ROWS[] = {
		{"user@host", false, true, "host", "", NULL},
		{"user:secret@host:1/q", false, true, "host", "1", "q"},
		{"amqps://user:sec@ret@host:1/q", true, true, "host", "1", "q"},
		{"amqp://user:[:]x@[::1]:1", false, true, "::1", "1", NULL},
		{"amqp://@host", false, true, "host", "", NULL},
		{"amqp://user:secret@host/a@b", false, true, "host", "", "a@b"},
	};
	check_parts(ROWS, LENGTH(ROWS));
}

/* Nothing is guessed. */
static void test_refused_urls(void **state)
{
	(void)state;
	static const char *const REFUSED[] = {"", "/", "/q", ":5672", "amqp://", "amqp:///q",
		"amqp://:5672", "http://host", "amqpss://host", "AMQP://host", "amq://host",
		"://host", " amqp://host", "user@", "user:secret@:1", "user@/q", "host:", "host:/q",
		"host:x", "host:12x", "host:-1", "host:+1", "host: 1", "host:65536", "host:99999",
		"host:123456", "host:000001", "ho st", "host\n", "\thost", "host:1 "};
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
		{"[::1]:65535", "::1", "65535"}, {"0.0.0.0:1", "0.0.0.0", "1"}};
	static const char *const REFUSED[] = {"", "host", ":0", "::1", "[::1]", "host:", "host:x",
		"host:65536", "host:1/q", "amqp://host:1", "ho st:1", "[::1]:"};
	struct url url;
	for (size_t i = 0; i < LENGTH(ACCEPTED); i++) {
		assert_null(url_parse_host_port(ACCEPTED[i].text, &url));
		assert_string_equal(url.host, ACCEPTED[i].host);
		assert_string_equal(url.port, ACCEPTED[i].port);
		assert_null(url.address);
	}
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
		"amqp://user:hunter2@/q", "amqp://user:hunter2/x@host", "amqp://user:hunter2"};
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

/* Parts get printed. */
static void test_the_password_is_in_no_part(void **state)
{
	(void)state;
	struct url url;
	assert_null(url_parse("amqp://user:hunter2@host:1/q", &url));
	assert_null(strstr(url.host, "hunter2"));
	assert_null(strstr(url.port, "hunter2"));
	assert_null(strstr(url.address, "hunter2"));
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_of_a_url),
		cmocka_unit_test(test_the_address_is_all_behind_the_first_slash),
		cmocka_unit_test(test_an_address_with_a_scheme_is_no_scheme_of_the_url),
		cmocka_unit_test(test_ipv6_hosts),
		cmocka_unit_test(test_credentials_are_noticed_and_left_out),
		cmocka_unit_test(test_refused_urls),
		cmocka_unit_test(test_a_host_longer_than_its_room_is_refused),
		cmocka_unit_test(test_host_and_port_alone),
		cmocka_unit_test(test_errors_never_quote_a_password),
		cmocka_unit_test(test_the_password_is_in_no_part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
