/* message: the template that a sender patches, read back by the library's own decoder. */
#include "message.h"

#include <proton/message.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define BIT(N, I) (((N) >> (I)) & 1)

/* All combinations of these options are numbered. */
#define COMBINATIONS 32
#define TTL_MS       7000
#define PRIORITY     9

/* The options whose bits are set in NUMBER. */
static struct message_options combination(unsigned number, const char *content, size_t length)
{
	return (struct message_options){
		.content = content,
		.content_bytes = length,
		.sequence = BIT(number, 0),
		.timestamp = BIT(number, 1),
		.durable = BIT(number, 2),
		.has_ttl = BIT(number, 3),
		.ttl_ms = TTL_MS,
		.has_priority = BIT(number, 4),
		.priority = PRIORITY,
	};
}

/* The template's present bytes as the library reads them. */
static pn_message_t *decode(const struct message_template *t)
{
	pn_message_t *message = pn_message();
	assert_int_equal(pn_message_decode(message, t->bytes, t->length), 0);
	return message;
}

/* What was not asked for has AMQP's default. */
static void assert_header(pn_message_t *message, const struct message_options *o)
{
	assert_int_equal(pn_message_is_durable(message), o->durable);
	assert_int_equal(pn_message_get_ttl(message), o->has_ttl ? TTL_MS : 0);
	assert_int_equal(
		pn_message_get_priority(message), o->has_priority ? PRIORITY : PN_DEFAULT_PRIORITY);
	assert_int_equal(pn_message_get_delivery_count(message), 0);
}

/* Goes to the next key, which must be KEY, and on to its value. */
static void assert_key(pn_data_t *properties, const char *key)
{
	assert_true(pn_data_next(properties));
	assert_int_equal(pn_data_type(properties), PN_STRING);
	pn_bytes_t name = pn_data_get_string(properties);
	assert_int_equal(name.size, strlen(key));
	assert_memory_equal(name.start, key, name.size);
	assert_true(pn_data_next(properties));
}

/* The properties are SN and TS in this order, or those of them that were asked for. */
static void assert_properties(
	pn_message_t *message, const struct message_options *o, uint64_t sn, int64_t ts)
{
	pn_data_t *properties = pn_message_properties(message);
	pn_data_rewind(properties);
	if (!o->sequence && !o->timestamp) {
		assert_int_equal(pn_data_size(properties), 0);
		return;
	}
	assert_true(pn_data_next(properties));
	assert_int_equal(pn_data_get_map(properties), 2u * (o->sequence + o->timestamp));
	pn_data_enter(properties);
	if (o->sequence) {
		assert_key(properties, "sn");
		assert_int_equal(pn_data_type(properties), PN_ULONG);
		assert_int_equal(pn_data_get_ulong(properties), sn);
	}
	if (o->timestamp) {
		assert_key(properties, "ts");
		assert_int_equal(pn_data_type(properties), PN_LONG);
		assert_int_equal(pn_data_get_long(properties), ts);
	}
	assert_false(pn_data_next(properties));
}

/* One data section with these bytes. */
static void assert_body(pn_message_t *message, const char *content, size_t length)
{
	pn_data_t *body = pn_message_body(message);
	assert_true(pn_message_is_inferred(message));
	pn_data_rewind(body);
	assert_true(pn_data_next(body));
	assert_int_equal(pn_data_type(body), PN_BINARY);
	pn_bytes_t bytes = pn_data_get_binary(body);
	assert_int_equal(bytes.size, length);
	if (length)
		assert_memory_equal(bytes.start, content, length);
	assert_false(pn_data_next(body));
}

/* Stamps the template and has everything read back. */
static void check_stamped(
	struct message_template *t, const struct message_options *o, uint64_t sn, int64_t ts)
{
	message_stamp(t, sn, ts);
	pn_message_t *message = decode(t);
	assert_header(message, o);
	assert_properties(message, o, sn, ts);
	assert_body(message, o->content, o->content_bytes);
	pn_message_free(message);
}

/* The library is the judge of what is valid. */
static void test_every_combination_is_read_back_by_the_library(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COMBINATIONS; i++) {
		struct message_options o = combination(i, "hello, world", 12);
		struct message_template t;
		message_template_create(&t, &o);
		check_stamped(&t, &o, 1, 2);
		message_template_destroy(&t);
		assert_null(t.bytes);
	}
}

/* Small values too must keep their eight bytes. */
static void test_values_of_any_size_are_patched_in_place(void **state)
{
	(void)state;
	static const struct {
		uint64_t sn;
		int64_t ts;
	} VALUES[] = {{0, 0}, {1, 1}, {127, -1}, {128, -128}, {255, 255}, {256, 65536},
		{UINT32_MAX, INT32_MIN}, {UINT64_C(1) << 32, INT64_C(1796070000123456789)},
		{UINT64_MAX, INT64_MAX}, {INT64_MAX, INT64_MIN}, {0, 0}};
	struct message_options o = combination(3, "x", 1);
	struct message_template t;
	message_template_create(&t, &o);
	size_t length = t.length;
	for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++)
		check_stamped(&t, &o, VALUES[i].sn, VALUES[i].ts);
	assert_int_equal(t.length, length);
	message_template_destroy(&t);
}

/* All other bytes are the same for every message. */
static void test_stamping_changes_nothing_but_the_values(void **state)
{
	(void)state;
	struct message_options o = combination(31, "content", 7);
	struct message_template t;
	message_template_create(&t, &o);
	message_stamp(&t, 0, 0);
	char *before = malloc(t.length);
	memcpy(before, t.bytes, t.length);
	message_stamp(&t, UINT64_MAX, -1);
	for (size_t i = 0; i < t.length; i++) {
		bool value = (i >= t.sequence_at && i < t.sequence_at + 8)
			|| (i >= t.timestamp_at && i < t.timestamp_at + 8);
		assert_int_equal(
			(unsigned char)t.bytes[i], value ? 0xff : (unsigned char)before[i]);
	}
	free(before);
	message_template_destroy(&t);
}

/* Offset 0 means absent, not the first byte. */
static void test_stamping_a_message_without_properties_changes_nothing(void **state)
{
	(void)state;
	struct message_options o = combination(0, "content", 7);
	struct message_template t;
	message_template_create(&t, &o);
	assert_int_equal(t.sequence_at, 0);
	assert_int_equal(t.timestamp_at, 0);
	char *before = malloc(t.length);
	memcpy(before, t.bytes, t.length);
	message_stamp(&t, UINT64_MAX, -1);
	assert_memory_equal(t.bytes, before, t.length);
	free(before);
	message_template_destroy(&t);
}

/* On both sides of where the length's encoding changes. */
static void test_bodies_of_every_length_are_kept(void **state)
{
	(void)state;
	static const size_t LENGTHS[] = {0, 1, 255, 256, 4095, 4096, 65536, 1 << 20};
	for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
		char *content = malloc(LENGTHS[i] + 1);
		for (size_t j = 0; j < LENGTHS[i]; j++)
			content[j] = (char)(j * 7 + j / 256);
		struct message_options o = combination(3, content, LENGTHS[i]);
		struct message_template t;
		message_template_create(&t, &o);
		check_stamped(&t, &o, 123456, -654321);
		message_template_destroy(&t);
		free(content);
	}
}

/* A body that looks like what is searched for must not be taken for it. */
static void test_a_body_full_of_keys_is_not_patched(void **state)
{
	(void)state;
	static const char CONTENT[] = "\xa1\x02sn\x80\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8"
				      "\xa1\x02ts\x81\x71\x72\x73\x74\x75\x76\x77\xf8";
	for (unsigned i = 0; i < 4; i++) {
		struct message_options o = combination(i, CONTENT, sizeof CONTENT - 1);
		struct message_template t;
		message_template_create(&t, &o);
		check_stamped(&t, &o, 42, 43);
		message_template_destroy(&t);
	}
}

/* What qpid-send sends: these bytes for the last two sections. */
static void test_the_encoding_is_that_of_qpid_send(void **state)
{
	(void)state;
	static const char EXPECTED[] = "\0\x53\x74\xd1\0\0\0\x1e\0\0\0\4"
				       "\xa1\2sn\x80\1\2\3\4\5\6\7\x08"
				       "\xa1\2ts\x81\xff\xff\xff\xff\xff\xff\xff\xfe"
				       "\0\x53\x75\xa0\3abc";
	struct message_options o = combination(3, "abc", 3);
	struct message_template t;
	message_template_create(&t, &o);
	message_stamp(&t, UINT64_C(0x0102030405060708), -2);
	const size_t length = sizeof EXPECTED - 1;
	assert_true(t.length >= length);
	assert_memory_equal(t.bytes + t.length - length, EXPECTED, length);
	message_template_destroy(&t);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_combination_is_read_back_by_the_library),
		cmocka_unit_test(test_values_of_any_size_are_patched_in_place),
		cmocka_unit_test(test_stamping_changes_nothing_but_the_values),
		cmocka_unit_test(test_stamping_a_message_without_properties_changes_nothing),
		cmocka_unit_test(test_bodies_of_every_length_are_kept),
		cmocka_unit_test(test_a_body_full_of_keys_is_not_patched),
		cmocka_unit_test(test_the_encoding_is_that_of_qpid_send),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
