/* text: bodies and headers of many messages, and of ruins. Messages are handed over in blocks of
 * exactly their size, so that AddressSanitizer sees a read beyond them. */
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))
#define BYTES(TEXT)   TEXT, sizeof(TEXT) - 1

/* Sections, without what is in them. */
#define HEADER      "\0\x53\x70"
#define ANNOTATIONS "\0\x53\x72\xc1\x07\x02\xa3\3x-a\x41"
#define PROPERTIES  "\0\x53\x73"
#define APPLICATION "\0\x53\x74"
#define DATA        "\0\x53\x75"
#define SEQUENCE    "\0\x53\x76"
#define VALUE       "\0\x53\x77"
#define FOOTER      "\0\x53\x78\xc1\x07\x02\xa3\3x-f\x41"

/* A copy in a block of its own. */
static char *copy(const char *bytes, size_t length)
{
	char *block = calloc(1, length ? length : 1);
	if (length)
		memcpy(block + !length, bytes, length);
	return block;
}

/* ---- bodies ---- */

static void assert_body(
	const char *message, size_t length, bool plain, const char *body, size_t body_length)
{
	struct text t = {0};
	const char *got;
	size_t got_length;
	char *block = copy(message, length);
	bool got_plain = text_body(&t, block + !length, length, &got, &got_length);
	if (got_plain != plain || got_length != body_length || memcmp(got, body, body_length) != 0)
		fail_msg("%d, not %d: \"%.*s\", not \"%s\"", got_plain, plain, (int)got_length, got,
			body);
	free(block);
	text_destroy(&t);
}

/* Whatever stands in front of it, and behind. */
static void test_bytes_are_taken_as_they_are(void **state)
{
	(void)state;
	assert_body(BYTES(DATA "\xa0\3a\nb"), true, BYTES("a\nb"));
	assert_body(BYTES(DATA "\xb0\0\0\0\3a\0b"), true, BYTES("a\0b"));
	assert_body(BYTES(DATA "\xa0\0"), true, BYTES(""));
	assert_body(BYTES(VALUE "\xa1\2\xc3\xa4"), true, BYTES("\xc3\xa4"));
	assert_body(BYTES(VALUE "\xb1\0\0\0\2hi"), true, BYTES("hi"));
	assert_body(BYTES(VALUE "\xa0\2\x80\xff"), true, BYTES("\x80\xff"));
	assert_body(BYTES(VALUE "\xa3\3sym"), true, BYTES("sym"));
	assert_body(BYTES(HEADER "\x45" ANNOTATIONS APPLICATION "\xc1\1\0" DATA "\xa0\1x"), true,
		BYTES("x"));
	assert_body(BYTES(DATA "\xa0\1x" FOOTER), true, BYTES("x"));
	assert_body(BYTES("\0\x80\0\0\0\0\0\0\0\x75\xa0\1x"), true, BYTES("x"));
}

/* One after the other. */
static void test_sections_are_joined(void **state)
{
	(void)state;
	assert_body(BYTES(DATA "\xa0\2ab" DATA "\xa0\0" DATA "\xa0\1x" FOOTER), true, BYTES("abx"));
	assert_body(BYTES(DATA "\xa0\0" DATA "\xa0\1x"), true, BYTES("x"));
	assert_body(
		BYTES(SEQUENCE "\xc0\3\1\x52\1" SEQUENCE "\xc0\3\1\x52\2"), false, BYTES("[1][2]"));
}

/* There is one line, with nothing in it. */
static void test_nothing_is_empty(void **state)
{
	(void)state;
	assert_body(BYTES(""), true, BYTES(""));
	assert_body(BYTES(HEADER "\x45"), true, BYTES(""));
	assert_body(BYTES(VALUE "\x40"), true, BYTES(""));
}

/* Of every type. */
static void test_values_are_written(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		size_t length;
		const char *text;
	} VALUES[] = {
		{BYTES("\x41"), "true"}, {BYTES("\x42"), "false"}, {BYTES("\x56\1"), "true"},
		{BYTES("\x56\0"), "false"}, {BYTES("\x43"), "0"}, {BYTES("\x44"), "0"},
		{BYTES("\x50\xff"), "255"}, {BYTES("\x51\xff"), "-1"}, {BYTES("\x52\xff"), "255"},
		{BYTES("\x53\xff"), "255"}, {BYTES("\x54\x80"), "-128"}, {BYTES("\x55\x7f"), "127"},
		{BYTES("\x60\xff\xff"), "65535"}, {BYTES("\x61\x80\0"), "-32768"},
		{BYTES("\x70\xff\xff\xff\xff"), "4294967295"},
		{BYTES("\x71\x80\0\0\0"), "-2147483648"},
		{BYTES("\x80\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615"},
		{BYTES("\x81\x80\0\0\0\0\0\0\0"), "-9223372036854775808"},
		{BYTES("\x83\0\0\0\0\0\0\0\7"), "7"}, {BYTES("\x72\x3f\xc0\0\0"), "1.5"},
		{BYTES("\x82\x40\x09\x21\xfb\x54\x44\x2d\x18"), "3.14159265358979"},
		{BYTES("\x73\0\0\0\x41"), "A"}, {BYTES("\x73\0\0\0\x0a"), "U+000A"},
		{BYTES("\x73\0\1\xf6\0"), "U+1F600"}, {BYTES("\x74\1\2\3\4"), "D32(01020304)"},
		{BYTES("\x98\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"),
			"00010203-0405-0607-0809-0a0b0c0d0e0f"},
		{BYTES("\x45"), "[]"}, {BYTES("\xc0\1\0"), "[]"}, {BYTES("\xc1\1\0"), "{}"},
		{BYTES("\xc0\4\3\x40\x41\x43"), "[null, true, 0]"},
		{BYTES("\xd0\0\0\0\5\0\0\0\1\x45"), "[[]]"},
		{BYTES("\xc1\x0a\4\xa1\1k\xa3\1s\x43\xa0\0"), "{\"k\"=:\"s\", 0=b\"\"}"},
		{BYTES("\xc0\x09\1\xa1\6\"\\\n\x7f\xc3z"), "[\"\\x22\\x5c\\x0a\\x7f\\xc3z\"]"},
		{BYTES("\xe0\4\2\x50\1\2"), "@[1, 2]"},
		{BYTES("\xe0\6\2\xa1\1a\1b"), "@[\"a\", \"b\"]"}, {BYTES("\xe0\2\0\x50"), "@[]"},
		{BYTES("\xf0\0\0\0\5\xff\xff\xff\xff\x40"), "@[null]"}, /* four billion of them */
		{BYTES("\xe0\3\2\x41\x53"), "@[true]"}, /* and more than two of them take */
		{BYTES("\0\x53\7\x41"), "@7 true"},
		{BYTES("\0\xa3\1d\xc0\3\2\x43\x41"), "@:\"d\" [0, true]"},
		{BYTES("\xc0\x07\2\0\x53\7\x41\x42\x42"), "[@7 true, false, false]"},
		{BYTES("\xc0\5\1\xc0\2\1\xff"), "[[...]]"}, /* no such code */
		{BYTES("\xc0\2\2\x52"), "[...]"},           /* it ends within a number */
	};
	for (size_t i = 0; i < LENGTH(VALUES); i++) {
		char message[128] = VALUE;
		memcpy(message + 3, VALUES[i].value, VALUES[i].length);
		assert_body(message, 3 + VALUES[i].length, false, VALUES[i].text,
			strlen(VALUES[i].text));
	}
}

/* What is left of them is shown. */
static void test_ruins_are_escaped(void **state)
{
	(void)state;
	assert_body(BYTES("hello"), false, BYTES("hello"));
	assert_body(BYTES(DATA "\xa0\5x"), false, BYTES("\\x00Su\\xa0\\x05x"));
	assert_body(BYTES(DATA "\xa0\1x\0"), false, BYTES("x\\x00"));
	assert_body(BYTES(VALUE "\xd0\xff\xff\xff\xff\0\0\0\0"), false,
		BYTES("\\x00Sw\\xd0\\xff\\xff\\xff\\xff\\x00\\x00\\x00\\x00"));
	assert_body(BYTES(VALUE "\xc0\0\0"), false, BYTES("\\x00Sw\\xc0\\x00\\x00"));
}

/* A peer may nest a thousand lists: that costs neither the stack nor time. */
static void test_deep_nesting_is_cut(void **state)
{
	(void)state;
	enum { LEVELS = 100000, BYTES_EACH = 9 };
	size_t length = 3 + (size_t)LEVELS * BYTES_EACH + 1;
	char *message = malloc(length);
	memcpy(message, VALUE, 3);
	for (size_t i = 0; i < LEVELS; i++) {
		char *list = message + 3 + i * BYTES_EACH;
		size_t size = length - 3 - i * BYTES_EACH - 5;
		list[0] = (char)0xd0;
		for (int b = 0; b < 4; b++) {
			list[1 + b] = (char)(size >> (24 - 8 * b));
			list[5 + b] = b == 3;
		}
	}
	message[length - 1] = 0x40;
	struct text t = {0};
	const char *body;
	size_t body_length;
	assert_false(text_body(&t, message, length, &body, &body_length));
	assert_int_equal(body_length, 32 + 3 + 32);
	assert_memory_equal(body + 31, "[...]", 5);
	/* the same of described values, of which nobody knows where they end */
	memset(message + 3, 0, length - 3);
	assert_false(text_body(&t, message, length, &body, &body_length));
	assert_in_range(body_length, 32, 40);
	text_destroy(&t);
	free(message);
}

/* ---- headers ---- */

static void assert_headers(const char *message, size_t length, const char *lines)
{
	struct text t = {0};
	char *block = copy(message, length);
	text_headers(&t, block + !length, length);
	if (t.length != strlen(lines) || memcmp(t.bytes, lines, t.length) != 0)
		fail_msg("\"%.*s\", not \"%s\"", (int)t.length, t.bytes, lines);
	free(block);
	text_destroy(&t);
}

/* In qpid-receive's order. */
static void test_headers_are_lines(void **state)
{
	(void)state;
	static const char ALL[] = HEADER
		"\xc0\x0c\5\x41\x50\7\x70\0\0\xea\x60\x42\x52\2" ANNOTATIONS PROPERTIES
		"\xc0\x44\x0d\xa1\2id\xa0\4user\xa1\2to\xa1\4news\xa1\5reply\x53\x09\xa3\4"
		"text\xa3\4gzip\x83\0\0\0\0\0\0\0\1\x83\0\0\0\0\0\0\0\2\xa1\1g\x52\3\xa1\1"
		"r" APPLICATION
		"\xc1\x15\x08\xa1\2sn\x53\1\xa1\1k\xa1\1v\xa1\1t\x41\xa1\1n\x40" DATA "\xa0\1x";
	assert_headers(BYTES(ALL),
		"Subject: news\nReplyTo: reply\nMessageId: id\nCorrelationId: 9\nUserId: user\n"
		"TTL: 60000\nPriority: 7\nDurable: true\nRedelivered: true\n"
		"Properties: {sn:1, k:v, t:true, n:null}\nContentType: text\n"
		"ContentEncoding: gzip\nTo: to\nExpiryTime: 1\nCreationTime: 2\nGroupId: g\n"
		"GroupSequence: 3\nReplyToGroupId: r\n\n");
}

/* And the empty line is always there. */
static void test_headers_that_are_not_there_have_no_line(void **state)
{
	(void)state;
	assert_headers(BYTES(""), "\n");
	assert_headers(BYTES("hello"), "\n");
	assert_headers(BYTES(DATA "\xa0\1x"), "\n");
	assert_headers(BYTES(HEADER "\x45" PROPERTIES "\x45" DATA "\xa0\1x"), "\n");
	assert_headers(BYTES(HEADER "\xc0\6\5\x42\x40\x40\x40\x43"), "\n");
	assert_headers(BYTES(PROPERTIES "\xc0\6\4\x40\x40\x40\xa1\0"), "Subject: \n\n");
	assert_headers(BYTES(APPLICATION "\xc1\1\0"), "Properties: {}\n\n");
}

/* Nobody's terminal is driven by a peer. */
static void test_headers_are_ascii(void **state)
{
	(void)state;
	assert_headers(BYTES(PROPERTIES "\xc0\x0b\4\x40\x40\x40\xa1\5\x1b[\n\xc3\xa4"),
		"Subject: \\x1b[\\x0a\\xc3\\xa4\n\n");
	assert_headers(BYTES(APPLICATION "\xc1\6\2\xa1\1\n\xa1\0"), "Properties: {\\x0a:}\n\n");
	assert_headers(BYTES(PROPERTIES "\xc0\2\1\x45"), "\n"); /* a list is no id */
}

/* ---- ruins ---- */

/* Whatever a byte is changed to, and wherever the message ends. */
static void test_no_message_is_read_beyond_its_end(void **state)
{
	(void)state;
	static const char MESSAGE[] = HEADER
		"\xc0\x0c\5\x41\x50\7\x70\0\0\xea\x60\x42\x52\2" PROPERTIES
		"\xc0\x06\3\xa1\2id\x40\x40" APPLICATION "\xc1\x05\2\xa1\1k\xe0\4\2\x50\1\2" VALUE
		"\xd1\0\0\0\x14\0\0\0\4\xa1\1k\x98\0\1\2\3\4\5\6\7\x43\xc0\3\1\0\x53";
	struct text t = {0};
	const char *body;
	size_t length;
	for (size_t cut = 0; cut <= sizeof MESSAGE - 1; cut++)
		for (size_t at = 0; at < cut; at++)
			for (int value = 0; value < 256; value += 1 + 2 * (at % 3)) {
				char *block = copy(MESSAGE, cut);
				block[at] = (char)value;
				text_body(&t, block, cut, &body, &length);
				for (size_t i = 0; i < length; i++)
					assert_true(body[i] || memchr(block, 0, cut));
				text_headers(&t, block, cut);
				for (size_t i = 0; i < t.length; i++)
					assert_in_range(t.bytes[i], '\n', '~');
				free(block);
			}
	text_destroy(&t);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_are_taken_as_they_are),
		cmocka_unit_test(test_sections_are_joined),
		cmocka_unit_test(test_nothing_is_empty),
		cmocka_unit_test(test_values_are_written),
		cmocka_unit_test(test_ruins_are_escaped),
		cmocka_unit_test(test_deep_nesting_is_cut),
		cmocka_unit_test(test_headers_are_lines),
		cmocka_unit_test(test_headers_that_are_not_there_have_no_line),
		cmocka_unit_test(test_headers_are_ascii),
		cmocka_unit_test(test_no_message_is_read_beyond_its_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
