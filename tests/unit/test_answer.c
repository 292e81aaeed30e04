/* answer: what is made of messages by the library's encoder is read back by its decoder. */
#include "answer.h"

#include <proton/message.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 4096

/* A message, and its answer. */
struct exchange {
	struct stamp_reader reader;
	struct answer_form form;
	char message[ROOM], answer[2 * ROOM];
	size_t length, answer_length;
};

static struct exchange *create(void)
{
	struct exchange *x = calloc(1, sizeof *x);
	stamp_reader_create(&x->reader);
	return x;
}

static void destroy(struct exchange *x)
{
	stamp_reader_destroy(&x->reader);
	answer_form_free(&x->form);
	free(x);
}

/* Answers the LENGTH bytes at x->message. */
static void answer(struct exchange *x, size_t length)
{
	stamp_read(&x->reader, x->message, length, length);
	if (!answer_form_fits(&x->form, &x->reader))
		answer_form_make(&x->form, &x->reader, x->message);
	answer_form_fill(&x->form, &x->reader, x->message);
	size_t body_at = x->reader.body_section_at;
	size_t body_bytes = answer_body_end(&x->reader, x->message, length) - body_at;
	memcpy(x->answer, x->form.head, x->form.head_bytes);
	memcpy(x->answer + x->form.head_bytes, x->message + body_at, body_bytes);
	x->answer_length = x->form.head_bytes + body_bytes;
}

/* The same of a message of the library's. */
static pn_message_t *answer_message(struct exchange *x, pn_message_t *m)
{
	x->length = sizeof x->message;
	assert_int_equal(pn_message_encode(m, x->message, &x->length), 0);
	answer(x, x->length);
	pn_message_t *a = pn_message();
	assert_int_equal(pn_message_decode(a, x->answer, x->answer_length), 0);
	return a;
}

/* With a number and a time. */
static pn_message_t *question(pn_msgid_t id, uint64_t sn)
{
	pn_message_t *m = pn_message();
	pn_message_set_id(m, id);
	pn_message_set_reply_to(m, "answers");
	pn_message_set_subject(m, "a subject");
	pn_data_t *properties = pn_message_properties(m);
	pn_data_put_map(properties);
	pn_data_enter(properties);
	pn_data_put_string(properties, pn_bytes(2, "sn"));
	pn_data_put_ulong(properties, sn);
	pn_data_put_string(properties, pn_bytes(2, "ts"));
	pn_data_put_long(properties, 1796070000000000000);
	pn_data_exit(properties);
	pn_data_put_binary(pn_message_body(m), pn_bytes(4, "body"));
	return m;
}

static void assert_same_id(pn_msgid_t got, pn_msgid_t expected)
{
	assert_int_equal(got.type, expected.type);
	switch (expected.type) {
	case PN_ULONG: assert_true(got.u.as_ulong == expected.u.as_ulong); break;
	case PN_UUID: assert_memory_equal(&got.u.as_uuid, &expected.u.as_uuid, 16); break;
	case PN_NULL: break;
	default:
		assert_int_equal(got.u.as_bytes.size, expected.u.as_bytes.size);
		assert_memory_equal(
			got.u.as_bytes.start, expected.u.as_bytes.start, expected.u.as_bytes.size);
	}
}

/* Nothing but what was said, and the same body. */
static void assert_answer(pn_message_t *a, pn_msgid_t id, uint64_t sn)
{
	assert_same_id(pn_message_get_correlation_id(a), id);
	assert_int_equal(pn_message_get_id(a).type, PN_NULL);
	assert_null(pn_message_get_reply_to(a));
	assert_null(pn_message_get_subject(a));
	pn_data_t *properties = pn_message_properties(a);
	pn_data_rewind(properties);
	assert_true(pn_data_next(properties));
	assert_int_equal(pn_data_get_map(properties), 4);
	pn_data_enter(properties);
	pn_data_next(properties);
	pn_data_next(properties);
	assert_true(pn_data_get_ulong(properties) == sn);
	pn_data_next(properties);
	pn_data_next(properties);
	assert_true(pn_data_get_long(properties) == 1796070000000000000);
	pn_data_t *body = pn_message_body(a);
	pn_data_rewind(body);
	assert_true(pn_data_next(body));
	assert_int_equal(pn_data_get_binary(body).size, 4);
}

static pn_msgid_t text(const char *bytes, size_t length)
{
	return (pn_msgid_t){.type = PN_STRING, .u.as_bytes = pn_bytes(length, bytes)};
}

/* From each to each, and to another one of the same length. */
static void test_ids(void **state)
{
	(void)state;
	static char longest[600];
	memset(longest, 'l', sizeof longest);
	const pn_msgid_t ids[] = {{.type = PN_NULL}, {.type = PN_ULONG, .u.as_ulong = 0},
		{.type = PN_ULONG, .u.as_ulong = 7}, {.type = PN_ULONG, .u.as_ulong = 1 << 20},
		{.type = PN_ULONG, .u.as_ulong = UINT64_MAX},
		{.type = PN_UUID, .u.as_uuid.bytes = "0123456789abcde"},
		{.type = PN_BINARY, .u.as_bytes = {3, "bin"}}, text("", 0), text("one", 3),
		text("two", 3), text(longest, 239), text(longest, 240), text(longest, 249),
		text(longest, 250), text(longest, 255), text(longest, 256), text(longest, 600)};
	const size_t count = sizeof ids / sizeof *ids;
	struct exchange *x = create();
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			for (int k = 0; k < 2; k++) {
				size_t which = k ? j : i;
				uint64_t sn = UINT64_MAX - i * j;
				pn_message_t *m = question(ids[which], sn);
				pn_message_t *a = answer_message(x, m);
				assert_answer(a, ids[which], sn);
				assert_string_equal(x->form.address, "answers");
				pn_message_free(m);
				pn_message_free(a);
			}
	destroy(x);
}

/* Ids that change are no reason to make the form anew. */
static void test_the_form_is_kept(void **state)
{
	(void)state;
	struct exchange *x = create();
	for (uint64_t n = 0; n < 100; n++) {
		char id[] = "id-00";
		id[3] += (char)(n / 10);
		id[4] += (char)(n % 10);
		pn_message_t *m = question(text(id, 5), UINT64_MAX - n);
		pn_message_t *a = answer_message(x, m);
		assert_answer(a, text(id, 5), UINT64_MAX - n);
		assert_int_equal(x->form.decodes, 1);
		pn_message_free(m);
		pn_message_free(a);
	}
	destroy(x);
}

/* A message id comes first. */
static void test_a_correlation_id(void **state)
{
	(void)state;
	struct exchange *x = create();
	for (int has_id = 0; has_id < 2; has_id++) {
		pn_message_t *m = question((pn_msgid_t){.type = PN_NULL}, 1);
		if (has_id)
			pn_message_set_id(m, text("id", 2));
		pn_message_set_correlation_id(m, text("correlation", 11));
		pn_message_t *a = answer_message(x, m);
		assert_same_id(pn_message_get_correlation_id(a),
			has_id ? text("id", 2) : text("correlation", 11));
		pn_message_free(m);
		pn_message_free(a);
	}
	destroy(x);
}

static void assert_bytes(struct exchange *x, const char *message, size_t length,
	const char *address, const char *expected, size_t expected_length)
{
	memcpy(x->message, message, length);
	answer(x, length);
	assert_string_equal(x->form.address, address);
	assert_int_equal(x->answer_length, expected_length);
	assert_memory_equal(x->answer, expected, expected_length);
}
#define ASSERT_BYTES(X, MESSAGE, ADDRESS, EXPECTED)                                                \
	assert_bytes(X, MESSAGE, sizeof(MESSAGE) - 1, ADDRESS, EXPECTED, sizeof(EXPECTED) - 1)

#define DATA      "\0\x53\x75\xa0\1x"
#define FOOTER    "\0\x53\x78\xc1\1\0"
#define HEADER    "\0\x53\x70\x45"
#define ANNOTATED "\0\x53\x72\xc1\1\0"
#define ASKED     "\0\x53\x73\xc0\x9\5\x40\x40\x40\x40\xa1\2to"
#define OF_ID_A   "\0\x53\x73\xc0\x09\6\x40\x40\x40\x40\x40\xa1\1a"

/* Bodies of every kind, byte by byte; what is behind them is left out. */
static void test_bodies(void **state)
{
	(void)state;
	struct exchange *x = create();
	ASSERT_BYTES(x, ASKED DATA, "to", DATA);
	ASSERT_BYTES(x, ASKED DATA FOOTER, "to", DATA);
	ASSERT_BYTES(x, HEADER ANNOTATED ASKED DATA DATA FOOTER, "to", DATA DATA);
	ASSERT_BYTES(x, ASKED "\0\x53\x77\x40", "to", "\0\x53\x77\x40");
	ASSERT_BYTES(x, ASKED "\0\x53\x76\x45" FOOTER, "to", "\0\x53\x76\x45");
	ASSERT_BYTES(x, ASKED, "to", "");
	ASSERT_BYTES(x, ASKED FOOTER, "to", "");
	/* cut off, or followed by what is no section */
	ASSERT_BYTES(x, ASKED "\0\x53\x75\xa0\2x", "to", "");
	ASSERT_BYTES(x, ASKED DATA "\0\x53\x75\xb0\xff\xff\xff\xff", "to", DATA);
	ASSERT_BYTES(x, ASKED DATA "hello", "to", DATA);
	destroy(x);
}

/* What is no address, or no id, is left out; nothing is read beyond the end. */
static void test_odd_properties(void **state)
{
	(void)state;
	struct exchange *x = create();
	ASSERT_BYTES(x, "", "", "");
	ASSERT_BYTES(x, "hello", "", "");
	ASSERT_BYTES(x, DATA, "", DATA);
	ASSERT_BYTES(x, "\0\x53\x73\x45" DATA, "", DATA);
	ASSERT_BYTES(x, "\0\x53\x73\xc0\4\1\xa1\1a" DATA, "", OF_ID_A DATA);
	/* not a string; an empty one; one with a zero */
	ASSERT_BYTES(x, "\0\x53\x73\xc0\x9\5\x40\x40\x40\x40\xa0\2to" DATA, "", DATA);
	ASSERT_BYTES(x, "\0\x53\x73\xc0\x9\5\x40\x40\x40\x40\xa3\2to" DATA, "", DATA);
	ASSERT_BYTES(x, "\0\x53\x73\xc0\7\5\x40\x40\x40\x40\xa1\0" DATA, "", DATA);
	ASSERT_BYTES(x, "\0\x53\x73\xc0\x9\5\x40\x40\x40\x40\xa1\2t\0" DATA, "", DATA);
	/* ids that are none: a long, a list, a described value, after which fields are unknown */
	ASSERT_BYTES(x, "\0\x53\x73\xc0\x0a\5\x55\1\x40\x40\x40\xa1\2to" DATA, "to", DATA);
	ASSERT_BYTES(x, "\0\x53\x73\xc0\x9\5\x45\x40\x40\x40\xa1\2to" DATA, "to", DATA);
	ASSERT_BYTES(x, "\0\x53\x73\xc0\x0b\5\0\x53\1\x40\x40\x40\x40\xa1\1t" DATA, "", DATA);
	destroy(x);
}

/* The longest address, and one that is longer. */
static void test_long_addresses(void **state)
{
	(void)state;
	struct exchange *x = create();
	static char address[ANSWER_ADDRESS_MAX + 2];
	for (size_t length = ANSWER_ADDRESS_MAX; length < ANSWER_ADDRESS_MAX + 2; length++) {
		memset(address, 'a', length);
		pn_message_t *m = question(text("id", 2), 1);
		pn_message_set_reply_to(m, address);
		pn_message_free(answer_message(x, m));
		assert_int_equal(strlen(x->form.address), length > ANSWER_ADDRESS_MAX ? 0 : length);
		pn_message_free(m);
	}
	destroy(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_the_form_is_kept),
		cmocka_unit_test(test_a_correlation_id),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_odd_properties),
		cmocka_unit_test(test_long_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
