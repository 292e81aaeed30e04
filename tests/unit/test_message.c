/* message: what a sender makes and patches, read back by the library's own decoder. */
#include "message.h"

#include "content_check.h"

#include <proton/message.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- all that a user can ask for ---- */

/* Writes number and time, has the message read back, and leaves that to be freed. */
static pn_message_t *stamped(struct message_template *t, uint64_t sn, int64_t ts)
{
	message_stamp(t, sn, ts);
	return decode(t);
}

static void assert_bytes(pn_bytes_t bytes, const char *text)
{
	assert_int_equal(bytes.size, strlen(text));
	assert_memory_equal(bytes.start, text, bytes.size);
}

static void assert_id(pn_msgid_t id, const char *text)
{
	assert_int_equal(id.type, PN_STRING);
	assert_bytes(id.u.as_bytes, text);
}

/* Each has its own text, so that none can be taken for another. */
static void test_every_property_is_read_back(void **state)
{
	(void)state;
	struct message_options o = combination(31, "content", 7);
	o.message_id = "an id";
	o.user_id = "a user";
	o.subject = "a subject";
	o.reply_to = "an address";
	o.correlation_id = "another id";
	o.content_type = "text/plain";
	struct message_template t;
	message_template_create(&t, &o);
	for (uint64_t sn = 1; sn < 1000; sn += 333) {
		pn_message_t *m = stamped(&t, sn, 77);
		assert_header(m, &o);
		assert_properties(m, &o, sn, 77);
		assert_body(m, "content", 7);
		assert_id(pn_message_get_id(m), "an id");
		assert_id(pn_message_get_correlation_id(m), "another id");
		assert_bytes(pn_message_get_user_id(m), "a user");
		assert_string_equal(pn_message_get_subject(m), "a subject");
		assert_string_equal(pn_message_get_reply_to(m), "an address");
		assert_string_equal(pn_message_get_content_type(m), "text/plain");
		assert_null(pn_message_get_address(m));
		assert_null(pn_message_get_group_id(m));
		pn_message_free(m);
	}
	message_template_destroy(&t);
}

/* What was not asked for is not there; the library writes lists without elements. */
static void test_there_are_no_properties_that_were_not_asked_for(void **state)
{
	(void)state;
	struct message_options o = combination(3, "x", 1);
	struct message_template t;
	message_template_create(&t, &o);
	assert_memory_equal(t.bytes, "\0\x53\x70\x45\0\x53\x73\x45\0\x53\x74", 11);
	pn_message_t *m = stamped(&t, 1, 1);
	assert_int_equal(pn_message_get_id(m).type, PN_NULL);
	assert_null(pn_message_get_content_type(m));
	pn_message_free(m);
	message_template_destroy(&t);
}

/* The number, with or without sn. */
static void test_an_automatic_id_is_the_number(void **state)
{
	(void)state;
	static const uint64_t NUMBERS[] = {0, 1, 255, 256, UINT64_MAX};
	for (unsigned i = 0; i < 4; i++) {
		struct message_options o = combination(i, "x", 1);
		o.message_id = MESSAGE_ID_AUTO;
		struct message_template t;
		message_template_create(&t, &o);
		for (size_t j = 0; j < sizeof NUMBERS / sizeof *NUMBERS; j++) {
			pn_message_t *m = stamped(&t, NUMBERS[j], 5);
			assert_int_equal(pn_message_get_id(m).type, PN_ULONG);
			assert_int_equal(pn_message_get_id(m).u.as_ulong, NUMBERS[j]);
			assert_properties(m, &o, NUMBERS[j], 5);
			pn_message_free(m);
		}
		message_template_destroy(&t);
	}
}

/* With digits of the number behind a prefix, and texts around it that look like them. */
static void test_an_id_with_a_prefix_is_patched(void **state)
{
	(void)state;
	static const struct {
		uint64_t number;
		const char *id;
	} IDS[] = {{0, "run-0000000000000000"}, {1, "run-0000000000000001"},
		{UINT64_C(0x123456789abcdef), "run-0123456789abcdef"},
		{UINT64_MAX, "run-ffffffffffffffff"}};
	struct message_options o = combination(31, "x", 1);
	o.id_prefix = "run-";
	o.message_id = MESSAGE_ID_AUTO; /* counts for nothing */
	o.reply_to = o.subject = "f1f2f3f4f5f6f7f8";
	struct message_template t;
	message_template_create(&t, &o);
	for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) {
		pn_message_t *m = stamped(&t, IDS[i].number, 5);
		assert_id(pn_message_get_id(m), IDS[i].id);
		assert_string_equal(pn_message_get_reply_to(m), o.reply_to);
		assert_string_equal(pn_message_get_subject(m), o.subject);
		assert_properties(m, &o, IDS[i].number, 5);
		pn_message_free(m);
	}
	message_template_destroy(&t);
}

/* What sn looks like before it is written stands in texts that come before it. */
#define LOOKS_LIKE_SN "\xa1\x02sn\x80\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8"
static void test_texts_full_of_keys_are_not_patched(void **state)
{
	(void)state;
	static const char *const PROPERTIES[] = {"a=" LOOKS_LIKE_SN};
	struct message_options o = combination(3, "x", 1);
	o.subject = o.reply_to = LOOKS_LIKE_SN;
	o.properties = PROPERTIES;
	o.property_count = 1;
	struct message_template t;
	message_template_create(&t, &o);
	message_stamp(&t, 0, 0);
	size_t found = 0;
	for (size_t i = 0; i + sizeof LOOKS_LIKE_SN <= t.length; i++)
		found += !memcmp(t.bytes + i, LOOKS_LIKE_SN, sizeof LOOKS_LIKE_SN - 1);
	assert_int_equal(found, 3);
	assert_int_equal(t.bytes[t.sequence_at + 7], 0);
	message_template_destroy(&t);
}

static const char *const FIELDS[] = {"yes=true", "no=false", "minus=-5",
	"large=9223372036854775808", "half=0.5", "text=a=b", "empty="};
#define FIELD_COUNT (sizeof FIELDS / sizeof *FIELDS)

/* DATA is in a map, behind whose present node the fields above follow. */
static void assert_fields(pn_data_t *data)
{
	assert_key(data, "yes");
	assert_true(pn_data_type(data) == PN_BOOL && pn_data_get_bool(data));
	assert_key(data, "no");
	assert_true(pn_data_type(data) == PN_BOOL && !pn_data_get_bool(data));
	assert_key(data, "minus");
	assert_true(pn_data_type(data) == PN_LONG && pn_data_get_long(data) == -5);
	assert_key(data, "large");
	assert_true(pn_data_type(data) == PN_ULONG);
	assert_int_equal(pn_data_get_ulong(data), UINT64_C(1) << 63);
	assert_key(data, "half");
	assert_true(pn_data_type(data) == PN_DOUBLE && pn_data_get_double(data) == 0.5);
	assert_key(data, "text");
	assert_int_equal(pn_data_type(data), PN_STRING);
	assert_bytes(pn_data_get_string(data), "a=b");
	assert_key(data, "empty");
	assert_int_equal(pn_data_type(data), PN_STRING);
	assert_bytes(pn_data_get_string(data), "");
	assert_false(pn_data_next(data));
}

/* Behind our own, with their types. */
static void test_properties_of_the_application(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct message_options o = combination(i, "x", 1);
		o.properties = FIELDS;
		o.property_count = FIELD_COUNT;
		struct message_template t;
		message_template_create(&t, &o);
		pn_message_t *m = stamped(&t, 3, 4);
		pn_data_t *properties = pn_message_properties(m);
		pn_data_rewind(properties);
		pn_data_next(properties);
		pn_data_enter(properties);
		if (o.sequence)
			assert_key(properties, "sn");
		if (o.timestamp)
			assert_key(properties, "ts");
		assert_fields(properties);
		pn_message_free(m);
		message_template_destroy(&t);
	}
}

/* However long they are. */
static void test_long_properties(void **state)
{
	(void)state;
	char *text = malloc(100004);
	memset(text, 'y', 100003);
	memcpy(text, "k=", 2);
	text[100003] = '\0';
	const char *properties[] = {text};
	struct message_options o = combination(3, "x", 1);
	o.properties = properties;
	o.property_count = 1;
	o.subject = text;
	struct message_template t;
	message_template_create(&t, &o);
	pn_message_t *m = stamped(&t, 3, 4);
	assert_string_equal(pn_message_get_subject(m), text);
	pn_data_t *data = pn_message_properties(m);
	pn_data_rewind(data);
	pn_data_next(data);
	pn_data_enter(data);
	assert_key(data, "sn");
	assert_key(data, "ts");
	assert_key(data, "k");
	assert_bytes(pn_data_get_string(data), text + 2);
	pn_message_free(m);
	message_template_destroy(&t);
	free(text);
}

/* A value, not data; what counts as content is its encoding. */
static void test_a_map_is_the_body(void **state)
{
	(void)state;
	struct message_options o = combination(3, NULL, 0);
	o.map = FIELDS;
	o.map_count = FIELD_COUNT;
	struct message_template t;
	message_template_create(&t, &o);
	pn_message_t *m = stamped(&t, 3, 4);
	assert_properties(m, &o, 3, 4);
	assert_false(pn_message_is_inferred(m));
	pn_data_t *body = pn_message_body(m);
	pn_data_rewind(body);
	assert_true(pn_data_next(body));
	assert_int_equal(pn_data_get_map(body), 2 * FIELD_COUNT);
	pn_data_enter(body);
	assert_fields(body);
	assert_int_equal((unsigned char)t.bytes[t.length - t.content_bytes], 0xd1); /* map32 */
	assert_memory_equal(t.bytes + t.length - t.content_bytes - 3, "\0\x53\x77", 3);
	pn_message_free(m);
	message_template_destroy(&t);
}

/* Intact for any number, and carries it. */
static void test_a_checked_body_is_intact(void **state)
{
	(void)state;
	static const size_t LENGTHS[] = {16, 17, 255, 256, 100000};
	for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
		struct message_options o = combination(3, NULL, LENGTHS[i]);
		o.check_content = true;
		struct message_template t;
		message_template_create(&t, &o);
		for (uint64_t sn = 1; sn < 1000; sn += 300) {
			pn_message_t *m = stamped(&t, sn, 4);
			pn_data_t *body = pn_message_body(m);
			pn_data_rewind(body);
			pn_data_next(body);
			pn_bytes_t bytes = pn_data_get_binary(body);
			struct content_check c;
			content_check_begin(&c);
			content_check_add(&c, bytes.start, bytes.size);
			assert_int_equal(bytes.size, LENGTHS[i]);
			assert_true(content_check_intact(&c));
			assert_int_equal(content_check_read_number(&c), sn);
			assert_int_equal(t.content_bytes, LENGTHS[i]);
			pn_message_free(m);
		}
		message_template_destroy(&t);
	}
}

/* Names of any length, longer and shorter than the one before, up to the longest. */
static void check_groups(struct message_options *o)
{
	static const char *const NAMES[] = {
		"G-0", "G-10", "G-9", "", "G-18446744073709551615", "G-1"};
	struct message_template t;
	o->group_name_max = strlen("G-18446744073709551615");
	message_template_create(&t, o);
	for (uint32_t i = 0; i < 2 * sizeof NAMES / sizeof *NAMES; i++) {
		const char *name = NAMES[i / 2];
		if (i % 2 == 0)
			message_set_group(&t, name);
		message_stamp_group(&t, i);
		pn_message_t *m = stamped(&t, 10 + i, 20);
		pn_data_t *properties = pn_message_properties(m);
		assert_body(m, o->content, o->content_bytes);
		pn_data_rewind(properties);
		pn_data_next(properties);
		pn_data_enter(properties);
		assert_key(properties, "sn");
		assert_int_equal(pn_data_get_ulong(properties), 10 + i);
		assert_key(properties, "ts");
		assert_int_equal(pn_data_get_long(properties), 20);
		if (o->group_key) {
			assert_key(properties, o->group_key);
			assert_bytes(pn_data_get_string(properties), name);
			assert_null(pn_message_get_group_id(m));
		} else {
			assert_string_equal(pn_message_get_group_id(m), name);
			assert_int_equal(pn_message_get_group_sequence(m), i);
		}
		assert_false(pn_data_next(properties));
		pn_message_free(m);
	}
	message_template_destroy(&t);
}

/* As a property of AMQP's, or of the application. */
static void test_groups(void **state)
{
	(void)state;
	struct message_options o = combination(31, "content", 7);
	check_groups(&o);
	o.group_key = "k";
	check_groups(&o);
}

/* A body of its own, in place: what is before it is ours, what is behind it is not. */
static void test_each_message_may_have_its_own_body(void **state)
{
	(void)state;
	static const size_t LENGTHS[] = {0, 1, 255, 256, 70000, 3};
	struct message_options o = combination(31, NULL, 0);
	struct message_template t;
	message_template_create(&t, &o);
	for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
		char *buffer = malloc(t.reserve + LENGTHS[i] + 8);
		char *body = buffer + t.reserve;
		memset(body, 'a' + (int)i, LENGTHS[i] + 8);
		message_set_body(&t, body, LENGTHS[i]);
		assert_true(t.bytes >= buffer);
		assert_int_equal(t.content_bytes, LENGTHS[i]);
		assert_int_equal(t.own_bytes, t.length);
		pn_message_t *m = stamped(&t, 10 + i, 20);
		assert_header(m, &o);
		assert_properties(m, &o, 10 + i, 20);
		assert_body(m, body, LENGTHS[i]);
		assert_int_equal(body[LENGTHS[i]], 'a' + (int)i);
		pn_message_free(m);
		free(buffer);
	}
	message_template_destroy(&t);
}

/* What is behind a message's own bytes is the same whatever is written before it. */
static void test_own_bytes(void **state)
{
	(void)state;
	struct message_options o = combination(31, "content", 7);
	for (int checked = 0; checked < 2; checked++) {
		o.check_content = checked;
		o.content_bytes = checked ? 100 : 7;
		struct message_template t;
		message_template_create(&t, &o);
		const char *rest = t.bytes + t.own_bytes;
		size_t rest_bytes = t.length - t.own_bytes;
		assert_int_equal(rest_bytes, checked ? 100 - 16 : 7);
		char *before = malloc(rest_bytes);
		memcpy(before, rest, rest_bytes);
		message_stamp(&t, UINT64_MAX, -1);
		assert_ptr_equal(t.bytes + t.own_bytes, rest);
		assert_memory_equal(rest, before, rest_bytes);
		free(before);
		message_template_destroy(&t);
	}
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
		cmocka_unit_test(test_every_property_is_read_back),
		cmocka_unit_test(test_there_are_no_properties_that_were_not_asked_for),
		cmocka_unit_test(test_an_automatic_id_is_the_number),
		cmocka_unit_test(test_an_id_with_a_prefix_is_patched),
		cmocka_unit_test(test_texts_full_of_keys_are_not_patched),
		cmocka_unit_test(test_properties_of_the_application),
		cmocka_unit_test(test_long_properties),
		cmocka_unit_test(test_a_map_is_the_body),
		cmocka_unit_test(test_a_checked_body_is_intact),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_each_message_may_have_its_own_body),
		cmocka_unit_test(test_own_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
