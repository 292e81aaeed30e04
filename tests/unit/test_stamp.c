/* message: the stamp reader, over many encodings of a message, their changes and their ruins.
 * Bytes are handed over in blocks of exactly their size, so that AddressSanitizer sees a read
 * beyond them. */
#include "message.h"
#include "stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LENGTH(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))

/* Sections in front of the application-properties (AMQP 1.0 part 3, section 3.2). */
#define HEADER_EMPTY      "\0\x53\x70\x45"
#define HEADER_DURABLE    "\0\x53\x70\xc0\x02\x01\x41"
#define HEADER_COUNT_0    "\0\x53\x70\xc0\x06\x05\x42\x40\x40\x42\x43"
#define HEADER_COUNT_3    "\0\x53\x70\xc0\x07\x05\x42\x40\x40\x42\x52\x03"
#define HEADER_COUNT_WIDE "\0\x53\x70\xc0\x0a\x05\x42\x40\x40\x42\x70\0\0\1\0"
#define HEADER_NOT_FIRST  "\0\x53\x70\xc0\x06\x05\x41\x40\x40\x42\x40"
#define HEADER_FIRST      "\0\x53\x70\xc0\x05\x04\x41\x40\x40\x41"
#define HEADER_ULONG      "\0\x80\0\0\0\0\0\0\0\x70\x45"
#define ANNOTATIONS       "\0\x53\x72\xc1\x07\x02\xa3\3x-a\x41"
#define OTHER_ANNOTATIONS "\0\x53\x72\xc1\x07\x02\xa3\3x-b\x41"
#define DELIVERY_NOTES    "\0\x53\x71\xc1\x07\x02\xa3\3x-d\x41"
#define PROPERTIES        "\0\x53\x73\xc0\x05\x01\xa1\2id"

enum body { VBIN8, VBIN32, VBIN8_ULONG, STR8, STR32, LIST, NOTHING, SEQUENCE };

/* How a message is encoded. */
struct layout {
	const char *name;
	const char *before; /* sections */
	size_t before_bytes;
	unsigned char sn, ts; /* format codes of the values; 0: absent */
	bool ts_first, map32, key32;
	const char *pairs; /* further keys and values, two pairs of them */
	size_t pairs_bytes;
	enum body body;
	bool redelivered;
	bool slow; /* need not be read the fast way */
};
#define BEFORE(TEXT) .before = (TEXT), .before_bytes = sizeof(TEXT) - 1
#define PAIRS(TEXT)  .pairs = (TEXT), .pairs_bytes = sizeof(TEXT) - 1

static const struct layout LAYOUTS[] = {
	{"plain", .sn = 0x80, .ts = 0x81},
	{"empty header", BEFORE(HEADER_EMPTY), .sn = 0x80, .ts = 0x81},
	{"durable", BEFORE(HEADER_DURABLE), .sn = 0x80, .ts = 0x81},
	{"delivery-count 0", BEFORE(HEADER_COUNT_0), .sn = 0x80, .ts = 0x81},
	{"delivery-count 3", BEFORE(HEADER_COUNT_3), .sn = 0x80, .ts = 0x81, .redelivered = true},
	{"delivery-count 256", BEFORE(HEADER_COUNT_WIDE), .sn = 0x80, .ts = 0x81,
		.redelivered = true},
	{"not the first, no count", BEFORE(HEADER_NOT_FIRST), .sn = 0x80, .ts = 0x81,
		.redelivered = true},
	{"the first", BEFORE(HEADER_FIRST), .sn = 0x80, .ts = 0x81},
	{"wide descriptor", BEFORE(HEADER_ULONG), .sn = 0x80, .ts = 0x81, .body = VBIN8_ULONG},
	{"annotations", BEFORE(ANNOTATIONS), .sn = 0x80, .ts = 0x81},
	{"other annotations", BEFORE(OTHER_ANNOTATIONS), .sn = 0x80, .ts = 0x81},
	{"all sections", BEFORE(HEADER_COUNT_3 DELIVERY_NOTES ANNOTATIONS PROPERTIES), .sn = 0x80,
		.ts = 0x81, .map32 = true, .redelivered = true},
	{"ts first", .sn = 0x80, .ts = 0x81, .ts_first = true},
	{"map32", .sn = 0x80, .ts = 0x81, .map32 = true},
	{"key32", .sn = 0x80, .ts = 0x81, .key32 = true, .slow = true},
	{"more keys", .sn = 0x80, .ts = 0x81, PAIRS("\xa1\1x\xa1\2so\xa1\2tt\x41")},
	{"keys as values", .sn = 0x80, .ts = 0x81, PAIRS("\xa1\1x\xa1\2sn\xa1\1y\xa1\2ts"),
		.slow = true},
	{"other keys", .sn = 0x80, .ts = 0x81, PAIRS("\xa1\3snn\x80\0\0\0\0\0\0\0\1\xa1\1s\x43")},
	{"symbols are no keys", .sn = 0x80, .ts = 0x81, PAIRS("\xa3\2sn\x52\7\xa3\2ts\x52\7")},
	{"sn alone", .sn = 0x80},
	{"ts alone", .ts = 0x81},
	{"no values", PAIRS("\xa1\1x\x41\xa1\1y\x42")},
	{"no values, durable", BEFORE(HEADER_DURABLE)},
	{"no properties", .body = VBIN8},
	{"vbin32", .sn = 0x80, .ts = 0x81, .body = VBIN32},
	{"timestamp", .sn = 0x81, .ts = 0x83},
	{"types swapped", .sn = 0x83, .ts = 0x80},
	{"smallulong", .sn = 0x53, .ts = 0x81},
	{"ulong0", .sn = 0x44, .ts = 0x81},
	{"uint", .sn = 0x70, .ts = 0x81},
	{"smalluint", .sn = 0x52, .ts = 0x55},
	{"uint0", .sn = 0x43, .ts = 0x71},
	{"ushort, int", .sn = 0x60, .ts = 0x71},
	{"ubyte, smallint", .sn = 0x50, .ts = 0x54},
	{"short, byte", .sn = 0x61, .ts = 0x51},
	{"str8", .sn = 0x80, .ts = 0x81, .body = STR8},
	{"str32", .sn = 0x80, .ts = 0x81, .body = STR32},
	{"list", .sn = 0x80, .ts = 0x81, .body = LIST},
	{"sequence", .sn = 0x80, .ts = 0x81, .body = SEQUENCE},
	{"no body", .sn = 0x80, .ts = 0x81, .body = NOTHING, .slow = true},
};
#define LAYOUT_COUNT LENGTH(LAYOUTS)

/* ---- encoding ---- */

/* A message, and what is to be read from it. */
struct sample {
	char bytes[3 * STAMP_PREFIX_MAX];
	size_t length;
	struct stamp stamp;
};

/* At the end of M. */
static void append(struct sample *m, const void *bytes, size_t length)
{
	if (length)
		memcpy(m->bytes + m->length, bytes, length);
	m->length += length;
}

/* WIDTH bytes, big-endian. */
static void append_number(struct sample *m, uint64_t value, size_t width)
{
	for (size_t i = width; i--;)
		m->bytes[m->length++] = (char)(value >> 8 * i);
}

/* Bytes that the value of format code CODE takes. */
static size_t width_of(unsigned char code)
{
	switch (code >> 4) {
	case 0x5: return 1;
	case 0x6: return 2;
	case 0x7: return 4;
	case 0x8: return 8;
	default: return 0;
	}
}

/* VALUE as CODE can hold it. */
static uint64_t narrowed(unsigned char code, uint64_t value)
{
	size_t bits = 8 * width_of(code);
	bool is_signed = code == 0x51 || code == 0x54 || code == 0x55 || code == 0x61
		|| code == 0x71 || code == 0x81 || code == 0x83;
	if (!bits)
		return 0;
	value <<= 64 - bits;
	return is_signed ? (uint64_t)((int64_t)value >> (64 - bits)) : value >> (64 - bits);
}

/* A key and a value. */
static void append_pair(struct sample *m, const struct layout *l, const char *key,
	unsigned char code, uint64_t value)
{
	if (l->key32)
		append(m, "\xb1\0\0\0\2", 5);
	else
		append(m, "\xa1\2", 2);
	append(m, key, 2);
	append_number(m, code, 1);
	append_number(m, value, width_of(code));
}

/* If the layout has one. */
static void append_sn(struct sample *m, const struct layout *l, uint64_t sn)
{
	if (!l->sn)
		return;
	append_pair(m, l, "sn", l->sn, sn);
	m->stamp.has_sn = true;
	m->stamp.sn = narrowed(l->sn, sn);
}

/* If the layout has one. */
static void append_ts(struct sample *m, const struct layout *l, int64_t ts)
{
	if (!l->ts)
		return;
	append_pair(m, l, "ts", l->ts, (uint64_t)ts);
	m->stamp.has_ts = true;
	m->stamp.ts = (int64_t)narrowed(l->ts, (uint64_t)ts);
}

/* The size is known, and written, last. */
static void append_properties(struct sample *m, const struct layout *l, uint64_t sn, int64_t ts)
{
	size_t size_width = l->map32 ? 4 : 1;
	if (!l->sn && !l->ts && !l->pairs)
		return;
	append(m, l->map32 ? "\0\x53\x74\xd1" : "\0\x53\x74\xc1", 4);
	size_t size_at = m->length;
	m->length += size_width;
	append_number(m, 2 * (uint64_t)(!!l->sn + !!l->ts) + (l->pairs ? 4 : 0), size_width);
	if (l->ts_first)
		append_ts(m, l, ts);
	append(m, l->pairs, l->pairs_bytes);
	append_sn(m, l, sn);
	if (!l->ts_first)
		append_ts(m, l, ts);
	size_t end = m->length;
	m->length = size_at;
	append_number(m, end - size_at - size_width, size_width);
	m->length = end;
}

/* CONTENT_BYTES is for bodies that have a length. */
static void append_body(struct sample *m, enum body body, size_t content_bytes)
{
	static const struct {
		const char *start;
		size_t start_bytes, length_bytes;
	} BODIES[] = {[VBIN8] = {"\0\x53\x75\xa0", 4, 1},
		[VBIN32] = {"\0\x53\x75\xb0", 4, 4},
		[VBIN8_ULONG] = {"\0\x80\0\0\0\0\0\0\0\x75\xa0", 11, 1},
		[STR8] = {"\0\x53\x77\xa1", 4, 1},
		[STR32] = {"\0\x53\x77\xb1", 4, 4},
		[LIST] = {"\0\x53\x77\xc0\3\1\x52\x07", 8, 0},
		[NOTHING] = {NULL, 0, 0},
		[SEQUENCE] = {"\0\x53\x76\x45", 4, 0}};
	append(m, BODIES[body].start, BODIES[body].start_bytes);
	if (!BODIES[body].length_bytes) { /* counted with its format code */
		m->stamp.content_bytes = body == NOTHING ? 0 : BODIES[body].start_bytes - 3;
		return;
	}
	append_number(m, content_bytes, BODIES[body].length_bytes);
	memset(m->bytes + m->length, 's', content_bytes);
	m->length += content_bytes;
	m->stamp.content_bytes = content_bytes;
}

/* Returns M, with what is to be read from it. */
static struct sample *encode(
	struct sample *m, const struct layout *l, uint64_t sn, int64_t ts, size_t content_bytes)
{
	m->length = 0;
	m->stamp = (struct stamp){.redelivered = l->redelivered};
	append(m, l->before, l->before_bytes);
	append_properties(m, l, sn, ts);
	append_body(m, l->body, content_bytes);
	return m;
}

/* ---- reading ---- */

/* Reads LENGTH bytes of which PREFIX are there. */
static struct stamp read_prefix(
	struct stamp_reader *r, const char *bytes, size_t prefix, size_t length)
{
	char *exact = malloc(prefix ? prefix : 1);
	memcpy(exact + !prefix, bytes, prefix);
	struct stamp stamp = *stamp_read(r, exact + !prefix, prefix, length);
	free(exact);
	return stamp;
}

/* By a reader that has seen nothing. */
static struct stamp read_fresh(const char *bytes, size_t prefix, size_t length)
{
	struct stamp_reader r;
	stamp_reader_create(&r);
	struct stamp stamp = read_prefix(&r, bytes, prefix, length);
	stamp_reader_destroy(&r);
	return stamp;
}

/* The values of absent stamps do not count. */
static bool same(const struct stamp *a, const struct stamp *b)
{
	return a->has_sn == b->has_sn && a->has_ts == b->has_ts && a->redelivered == b->redelivered
		&& (!a->has_sn || a->sn == b->sn) && (!a->has_ts || a->ts == b->ts)
		&& a->content_bytes == b->content_bytes;
}

/* Says what differs. */
static void assert_stamp(const struct stamp *got, const struct stamp *expected, const char *what)
{
	if (!same(got, expected))
		fail_msg("%s: sn %llu, not %llu; ts %lld, not %lld; content %llu, not %llu; "
			 "redelivered %d, not %d",
			what, (unsigned long long)got->sn, (unsigned long long)expected->sn,
			(long long)got->ts, (long long)expected->ts,
			(unsigned long long)got->content_bytes,
			(unsigned long long)expected->content_bytes, got->redelivered,
			expected->redelivered);
}

/* Reads M as a receiver does, and compares. */
static void check(struct stamp_reader *r, const struct sample *m, const char *what)
{
	size_t prefix = m->length < STAMP_PREFIX_MAX ? m->length : STAMP_PREFIX_MAX;
	struct stamp got = read_prefix(r, m->bytes, prefix, m->length);
	assert_stamp(&got, &m->stamp, what);
}

/* Whether the next message of the same layout is read the fast way: short encodings change their
 * length with the value, so they never are. */
static bool is_fast(const struct layout *l)
{
	return !l->slow && (!l->sn || width_of(l->sn) == 8) && (!l->ts || width_of(l->ts) == 8);
}

/* ---- one layout ---- */

/* The next one by the same reader, with other values and another length. */
static void test_every_layout_is_read(void **state)
{
	(void)state;
	static struct sample m;
	for (size_t i = 0; i < LAYOUT_COUNT; i++) {
		const struct layout *l = &LAYOUTS[i];
		struct stamp_reader r;
		stamp_reader_create(&r);
		for (uint64_t n = 1; n < 1000; n = n * 3 + 1)
			check(&r, encode(&m, l, n, (int64_t)n * 1000000007, n % 250), l->name);
		stamp_reader_destroy(&r);
	}
}

/* A full decode for each message would be slow, and no other test would tell. */
static void test_values_of_eight_bytes_are_read_the_fast_way(void **state)
{
	(void)state;
	static struct sample a, b;
	for (size_t i = 0; i < LAYOUT_COUNT; i++) {
		const struct layout *l = &LAYOUTS[i];
		struct stamp_reader r;
		stamp_reader_create(&r);
		encode(&a, l, 7, 1796070000000000000, 100);
		encode(&b, l, UINT64_MAX, INT64_MIN, 200);
		assert_false(stamp_alike(&r, a.bytes, a.length, a.length));
		check(&r, &a, l->name);
		bool alike = stamp_alike(&r, b.bytes, b.length, b.length);
		if (!l->slow && alike != is_fast(l))
			fail_msg("%s: is read the %s way", l->name, alike ? "fast" : "slow");
		check(&r, &b, l->name);
		check(&r, &a, l->name);
		stamp_reader_destroy(&r);
	}
}

/* Every width and sign, and values that look like keys. */
static void test_extreme_values_are_read(void **state)
{
	(void)state;
	static const uint64_t VALUES[] = {0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536,
		INT32_MAX, (uint64_t)INT32_MIN, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MIN,
		UINT64_MAX, UINT64_C(0xa102736e80a10274)};
	static struct sample m;
	for (size_t i = 0; i < LAYOUT_COUNT; i++) {
		struct stamp_reader r;
		stamp_reader_create(&r);
		for (size_t j = 0; j < LENGTH(VALUES); j++)
			for (size_t k = 0; k < LENGTH(VALUES); k++)
				check(&r, encode(&m, &LAYOUTS[i], VALUES[j], (int64_t)VALUES[k], 9),
					LAYOUTS[i].name);
		stamp_reader_destroy(&r);
	}
}

/* Other senders may use these names for something else. */
static void test_what_is_no_integer_is_no_stamp(void **state)
{
	(void)state;
	static const char STRINGS[] = "\0\x53\x74\xc1\x0f\4\xa1\2sn\xa1\1"
				      "x\xa1\2ts\xa1\1"
				      "-\0\x53\x75\xa0\1x";
	static const char NULLS[] = "\0\x53\x74\xc1\x0b\4\xa1\2sn\x40\xa1\2ts\x40\0\x53\x75\xa0\1x";
	static const char LIST_NOT_MAP[] = "\0\x53\x74\xc0\x07\2\xa1\2sn\x52\5\0\x53\x75\xa0\1x";
	static const struct stamp EXPECTED = {.content_bytes = 1};
	struct stamp got = read_fresh(STRINGS, sizeof STRINGS - 1, sizeof STRINGS - 1);
	assert_stamp(&got, &EXPECTED, "strings");
	got = read_fresh(NULLS, sizeof NULLS - 1, sizeof NULLS - 1);
	assert_stamp(&got, &EXPECTED, "nulls");
	got = read_fresh(LIST_NOT_MAP, sizeof LIST_NOT_MAP - 1, sizeof LIST_NOT_MAP - 1);
	assert_stamp(&got, &EXPECTED, "list");
}

/* A message whose property sn is VALUE, encoded. */
static struct stamp read_value(const char *value, size_t bytes)
{
	struct sample *m = calloc(1, sizeof *m);
	append(m, "\0\x53\x74\xc1", 4);
	append_number(m, 5 + bytes, 1);
	append(m, "\2\xa1\2sn", 5);
	append(m, value, bytes);
	append(m, "\0\x53\x75\xa0\1x", 6);
	struct stamp stamp = read_fresh(m->bytes, m->length, m->length);
	free(m);
	return stamp;
}

/* Some brokers turn a number into one that their own language has, or into a string. */
static void test_other_numbers_and_digits_are_read(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		size_t bytes;
		bool good;
		uint64_t sn;
	} VALUES[] = {
#define VALUE(TEXT) TEXT, sizeof(TEXT) - 1
		{VALUE("\xa1\1\x30"), true, 0},
		{VALUE("\xa1\x05\x31\x32\x33\x34\x35"), true, 12345},
		{VALUE("\xb1\0\0\0\2\x30\x37"), true, 7},
		{VALUE("\xa1\2-5"), true, (uint64_t)-5},
		{VALUE("\xa1\x14"
		       "18446744073709551615"),
			true, UINT64_MAX},
		{VALUE("\xa1\x14"
		       "18446744073709551616"),
			false, 0},
		{VALUE("\xa1\x14"
		       "-9223372036854775809"),
			false, 0},
		{VALUE("\xa1\0"), false, 0},
		{VALUE("\xa1\1-"), false, 0},
		{VALUE("\xa1\2\x31x"), false, 0},
		{VALUE("\xa1\2 \x31"), false, 0},
		{VALUE("\xa0\1\x31"), false, 0}, /* binary is no text */
		{VALUE("\x72\x41\x20\0\0"), true, 10},
		{VALUE("\x72\xbf\x80\0\0"), true, (uint64_t)-1},
		{VALUE("\x72\x3f\0\0\0"), false, 0},   /* 0.5 */
		{VALUE("\x72\x7f\x80\0\0"), false, 0}, /* infinite */
		{VALUE("\x72\x7f\xc0\0\0"), false, 0}, /* no number */
		{VALUE("\x82\x40\xc8\x1c\x80\0\0\0\0"), true, 12345},
		{VALUE("\x82\x43\xef\xff\xff\xff\xff\xff\xff"), true, UINT64_C(0xfffffffffffff800)},
		{VALUE("\x82\x43\xf0\0\0\0\0\0\0"), false, 0}, /* 2^64 */
		{VALUE("\x82\xc3\xe0\0\0\0\0\0\0"), true, (uint64_t)INT64_MIN},
		{VALUE("\x82\xc3\xf0\0\0\0\0\0\0"), false, 0},
	};
	for (size_t i = 0; i < LENGTH(VALUES); i++) {
		struct stamp stamp = read_value(VALUES[i].value, VALUES[i].bytes);
		if (stamp.has_sn != VALUES[i].good || (stamp.has_sn && stamp.sn != VALUES[i].sn))
			fail_msg("value %d: %d, %llu", (int)i, stamp.has_sn,
				(unsigned long long)stamp.sn);
	}
}

/* ---- bodies ---- */

/* Reads M and says where its body is. */
static const char *read_body_of(struct stamp_reader *r, const struct sample *m, size_t *length)
{
	stamp_read(r, m->bytes, m->length, m->length);
	return stamp_body(r, m->bytes, m->length, length);
}

/* The first time and when a message looks like the last. */
static void test_a_body_of_plain_bytes_is_found(void **state)
{
	(void)state;
	static struct sample m;
	for (size_t i = 0; i < LAYOUT_COUNT; i++) {
		const struct layout *l = &LAYOUTS[i];
		struct stamp_reader r;
		stamp_reader_create(&r);
		bool plain = l->body != LIST && l->body != NOTHING && l->body != SEQUENCE;
		for (size_t n = 0; n < 5; n++) {
			size_t length = 1000;
			encode(&m, l, n, 1, 3 * n);
			const char *body = read_body_of(&r, &m, &length);
			assert_true(!body == !plain);
			if (plain) {
				assert_ptr_equal(body, m.bytes + m.length - 3 * n);
				assert_int_equal(length, 3 * n);
			}
		}
		stamp_reader_destroy(&r);
	}
}

/* Another section behind it is part of the body, or a footer; less than announced is a ruin. */
static void test_a_body_that_does_not_end_the_message_is_not_plain(void **state)
{
	(void)state;
	static struct sample m;
	struct stamp_reader r;
	size_t length;
	stamp_reader_create(&r);
	for (int first = 0; first < 2; first++) {
		encode(&m, &LAYOUTS[0], 1, 2, 10);
		append(&m, "\0\x53\x75\xa0\1x", 6);
		assert_null(read_body_of(&r, &m, &length));
		encode(&m, &LAYOUTS[0], 1, 2, 10);
		m.length--;
		assert_null(read_body_of(&r, &m, &length));
		m.length++;
		assert_non_null(read_body_of(&r, &m, &length));
	}
	assert_null(read_body_of(&r, &(struct sample){.length = 0}, &length));
	stamp_reader_destroy(&r);
}

/* ---- changes ---- */

/* There and back, so that each is read after each. */
static void test_every_layout_may_follow_every_other(void **state)
{
	(void)state;
	static struct sample m;
	char what[128];
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		for (size_t j = 0; j < LAYOUT_COUNT; j++) {
			const struct layout *a = &LAYOUTS[i], *b = &LAYOUTS[j];
			struct stamp_reader r;
			stamp_reader_create(&r);
			for (uint64_t n = 1; n <= 6; n++) {
				snprintf(what, sizeof what, "%s, then %s: message %d", a->name,
					b->name, (int)n);
				check(&r, encode(&m, n % 2 ? a : b, n, (int64_t)n << 40, 30 + n),
					what);
			}
			stamp_reader_destroy(&r);
		}
}

/* Every byte but those of values, body length and body matters. */
static void test_a_change_of_any_byte_around_the_values_is_noticed(void **state)
{
	(void)state;
	static struct sample m;
	struct stamp_reader r;
	stamp_reader_create(&r);
	encode(&m, &LAYOUTS[9], 1, 2, 10);
	check(&r, &m, LAYOUTS[9].name);
	const size_t content_at = m.length - 11; /* and its length in front of it */
	size_t ignored = 0;
	for (size_t i = 0; i < content_at; i++) {
		m.bytes[i] ^= 1;
		ignored += stamp_alike(&r, m.bytes, m.length, m.length);
		m.bytes[i] ^= 1;
	}
	assert_int_equal(ignored, 16);
	stamp_reader_destroy(&r);
}

/* A property may be of bytes that look like the pair that is searched for. */
static void test_a_binary_value_that_looks_like_a_stamp_is_not_one(void **state)
{
	(void)state;
	static const char FORMAT[] =
		"\0\x53\x74\xc1\x1f\4\xa1\1x\xa0\x0d\xa1\2sn\x80\0\0\0\0\0\0\0\5"
		"\xa1\2sn\x80\0\0\0\0\0\0\0\5\0\x53\x75\xa0\1b";
	enum { INSIDE = 23 };
	char bytes[sizeof FORMAT - 1];
	memcpy(bytes, FORMAT, sizeof bytes);
	struct stamp_reader r;
	stamp_reader_create(&r);
	const struct stamp expected = {.has_sn = true, .sn = 5, .content_bytes = 1};
	struct stamp got = read_prefix(&r, bytes, sizeof bytes, sizeof bytes);
	assert_stamp(&got, &expected, "first");
	assert_int_equal(bytes[INSIDE], 5);
	bytes[INSIDE] = 7;
	got = read_prefix(&r, bytes, sizeof bytes, sizeof bytes);
	assert_stamp(&got, &expected, "second");
	stamp_reader_destroy(&r);
}

/* ---- the sender's template ---- */

/* Our own messages are always read the fast way. */
static void test_the_template_is_read_back(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 32; i++) {
		const struct message_options o = {.content = "0123456789",
			.content_bytes = 10,
			.sequence = i & 1,
			.timestamp = i & 2,
			.durable = i & 4,
			.has_ttl = i & 8,
			.ttl_ms = 5,
			.has_priority = i & 16,
			.priority = 7};
		struct message_template t;
		struct stamp_reader r;
		message_template_create(&t, &o);
		stamp_reader_create(&r);
		for (uint64_t n = 0; n < 100; n++) {
			const struct stamp expected = {.has_sn = o.sequence,
				.has_ts = o.timestamp,
				.sn = n,
				.ts = -(int64_t)n,
				.content_bytes = 10};
			message_stamp(&t, n, -(int64_t)n);
			assert_int_equal(stamp_alike(&r, t.bytes, t.length, t.length), n > 0);
			struct stamp got = read_prefix(&r, t.bytes, t.length, t.length);
			assert_stamp(&got, &expected, "template");
		}
		stamp_reader_destroy(&r);
		message_template_destroy(&t);
	}
}

/* ---- long messages ---- */

/* Its body is not looked at. */
static void test_of_a_long_message_the_prefix_is_enough(void **state)
{
	(void)state;
	static struct sample m;
	static const struct layout LONG = {"long", .sn = 0x80, .ts = 0x81, .body = VBIN32};
	struct stamp_reader r;
	stamp_reader_create(&r);
	for (uint64_t n = 1; n <= 10; n++)
		check(&r, encode(&m, &LONG, n, (int64_t)n, STAMP_PREFIX_MAX + 1000 * (n % 3)),
			LONG.name);
	stamp_reader_destroy(&r);
}

/* More may be handed over than is kept. */
static void test_a_prefix_longer_than_what_is_kept_is_fine(void **state)
{
	(void)state;
	static struct sample m;
	static const struct layout LONG = {"long", .sn = 0x80, .ts = 0x81, .body = VBIN32};
	struct stamp_reader r;
	stamp_reader_create(&r);
	for (uint64_t n = 1; n <= 3; n++) {
		encode(&m, &LONG, n, (int64_t)n, 2 * STAMP_PREFIX_MAX);
		struct stamp got = read_prefix(&r, m.bytes, m.length, m.length);
		assert_stamp(&got, &m.stamp, LONG.name);
	}
	stamp_reader_destroy(&r);
}

/* Message annotations of one binary value, so that they take BYTES in all. */
static size_t fill_annotations(char *to, size_t bytes)
{
	struct sample *m = calloc(1, sizeof *m);
	append(m, "\0\x53\x72\xd1", 4);
	append_number(m, bytes - 8, 4);
	append(m, "\0\0\0\2\xa3\3x-a\xb0", 10);
	append_number(m, bytes - 22, 4);
	m->length += bytes - 22;
	memcpy(to, m->bytes, m->length);
	size_t length = m->length;
	free(m);
	return length;
}

/* All positions of the stamp and the body around the end of the prefix: found in full or not. */
static void test_a_stamp_around_the_end_of_the_prefix_is_found_or_missed(void **state)
{
	(void)state;
	static struct sample m;
	static char annotations[STAMP_PREFIX_MAX + 64];
	for (size_t bytes = STAMP_PREFIX_MAX - 80; bytes <= STAMP_PREFIX_MAX + 10; bytes++) {
		struct layout l = {"far", .sn = 0x80, .ts = 0x81, .before = annotations};
		l.before_bytes = fill_annotations(annotations, bytes);
		assert_int_equal(l.before_bytes, bytes);
		struct stamp_reader r;
		stamp_reader_create(&r);
		for (uint64_t n = 1; n <= 3; n++) {
			encode(&m, &l, n, (int64_t)n, 200);
			size_t properties_end = m.length - 205;
			struct stamp got = read_prefix(&r, m.bytes, STAMP_PREFIX_MAX, m.length);
			bool inside = properties_end <= STAMP_PREFIX_MAX;
			assert_int_equal(got.has_sn, inside);
			assert_int_equal(got.has_ts, inside);
			assert_int_equal(got.sn, inside ? n : 0);
			if (m.length - 200 <= STAMP_PREFIX_MAX)
				assert_int_equal(got.content_bytes, 200);
		}
		stamp_reader_destroy(&r);
	}
}

/* ---- ruins ---- */

/* Cuts the message at each byte, and reads it by a new reader, and by one that has seen it whole:
 * what comes out must not depend on that. */
static void test_a_message_may_end_anywhere(void **state)
{
	(void)state;
	static struct sample whole, other;
	for (size_t i = 0; i < LAYOUT_COUNT; i++) {
		encode(&whole, &LAYOUTS[i], 0x1234, 0x5678, 5);
		encode(&other, &LAYOUTS[i], 0x4321, 0x8765, 5);
		for (size_t cut = 0; cut < whole.length; cut++) {
			struct stamp_reader r;
			stamp_reader_create(&r);
			check(&r, &other, LAYOUTS[i].name);
			struct stamp fresh = read_fresh(whole.bytes, cut, cut);
			struct stamp got = read_prefix(&r, whole.bytes, cut, cut);
			assert_stamp(&got, &fresh, LAYOUTS[i].name);
			assert_true(got.content_bytes <= cut);
			check(&r, &whole, LAYOUTS[i].name); /* it recovers */
			fresh = read_fresh(whole.bytes, cut, whole.length);
			got = read_prefix(&r, whole.bytes, cut, whole.length);
			assert_stamp(&got, &fresh, LAYOUTS[i].name);
			check(&r, &whole, LAYOUTS[i].name);
			stamp_reader_destroy(&r);
		}
	}
}

/* Sets each byte to each of many values. */
static void test_a_damaged_message_is_read_as_by_a_new_reader(void **state)
{
	(void)state;
	static const int VALUES[] = {0, 1, 0x40, 0x41, 0x43, 0x45, 0x53, 0x70, 0x74, 0x7f, 0x80,
		0xa0, 0xa1, 0xb0, 0xc0, 0xc1, 0xd1, 0xe0, 0xf0, 0xff};
	static struct sample m;
	struct stamp_reader r;
	stamp_reader_create(&r);
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		for (size_t at = 0; at < encode(&m, &LAYOUTS[i], 1, 2, 3)->length; at++)
			for (size_t j = 0; j < LENGTH(VALUES); j++) {
				m.bytes[at] = (char)VALUES[j];
				struct stamp fresh = read_fresh(m.bytes, m.length, m.length);
				struct stamp got = read_prefix(&r, m.bytes, m.length, m.length);
				assert_stamp(&got, &fresh, LAYOUTS[i].name);
			}
	stamp_reader_destroy(&r);
}

/* Properties that have nothing but an id, with a subject behind it. */
struct id_sample {
	const char *name, *id;
	size_t id_bytes, payload_bytes; /* 0: it may be of another length next time */
};
#define ID(NAME, TEXT, PAYLOAD) {NAME, TEXT, sizeof(TEXT) - 1, PAYLOAD}
static const struct id_sample ID_SAMPLES[] = {
	ID("str8", "\xa1\3abc", 3),
	ID("str32", "\xb1\0\0\0\3abc", 3),
	ID("vbin8", "\xa0\3abc", 3),
	ID("uuid", "\x98zzzzyyyyzzzzyyyy", 16),
	ID("ulong", "\x80zzzzyyyy", 8),
	ID("empty", "\xa1\0", 0),
	ID("smallulong", "\x53z", 0),
	ID("ulong0", "\x44", 0),
	ID("null", "\x40", 0),
	ID("long", "\x81zzzzyyyy", 0),
	ID("list", "\xc0\3\1\x52z", 0),
};

/* With this id, and stamps. */
static struct sample *encode_with_id(struct sample *m, const struct id_sample *id, uint64_t sn)
{
	static const struct layout STAMPS = {.name = "id", .sn = 0x80, .ts = 0x81};
	char before[64] = "\0\x53\x73\xc0\0\4";
	size_t length = 6;
	memcpy(before + length, id->id, id->id_bytes);
	length += id->id_bytes;
	memcpy(before + length, "\x40\x40\xa1\1s", 5); /* user-id, to, subject */
	length += 5;
	before[4] = (char)(length - 5);
	struct layout l = STAMPS;
	l.before = before;
	l.before_bytes = length;
	return encode(m, &l, sn, 7, 100);
}

/* Messages that differ in their ids alone look alike, if those are as long; nothing else may. */
static void test_the_id_may_differ(void **state)
{
	(void)state;
	static struct sample a, b;
	for (size_t i = 0; i < LENGTH(ID_SAMPLES); i++) {
		const struct id_sample *id = &ID_SAMPLES[i];
		struct stamp_reader r;
		stamp_reader_create(&r);
		check(&r, encode_with_id(&a, id, 1), id->name);
		encode_with_id(&b, id, 2);
		assert_true(stamp_alike(&r, b.bytes, b.length, b.length));
		assert_int_equal(r.id_end - r.id_at, id->payload_bytes);
		for (size_t at = 0; at < r.hole[0]; at++) {
			bool in_id = at >= r.id_at && at < r.id_end;
			b.bytes[at] ^= 1;
			if (stamp_alike(&r, b.bytes, b.length, b.length) != in_id)
				fail_msg("%s: byte %zu may%s differ", id->name, at,
					in_id ? " not" : "");
			b.bytes[at] ^= 1;
		}
		for (size_t at = r.id_at; at < r.id_end; at++)
			b.bytes[at] ^= (char)0xff;
		assert_true(stamp_alike(&r, b.bytes, b.length, b.length));
		check(&r, &b, id->name);
		assert_int_equal(r.decodes, 1);
		stamp_reader_destroy(&r);
	}
}

/* Of a body, the whole section. */
static void test_where_the_body_starts(void **state)
{
	(void)state;
	static struct sample m;
	struct stamp_reader r;
	stamp_reader_create(&r);
	check(&r, encode_with_id(&m, &ID_SAMPLES[0], 1), "body");
	assert_memory_equal(m.bytes + r.body_section_at, "\0\x53\x75\xa0\x64", 5);
	m.length = r.body_section_at;
	read_prefix(&r, m.bytes, m.length, m.length);
	assert_int_equal(r.body_section_at, m.length);
	stamp_reader_destroy(&r);
}

/* Nor has what is not AMQP. */
static void test_nothing_at_all_has_no_stamp(void **state)
{
	(void)state;
	static const struct stamp NONE;
	struct stamp got = read_fresh("", 0, 0);
	assert_stamp(&got, &NONE, "empty");
	got = read_fresh("hello", 5, 5);
	assert_stamp(&got, &NONE, "no AMQP");
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_layout_is_read),
		cmocka_unit_test(test_values_of_eight_bytes_are_read_the_fast_way),
		cmocka_unit_test(test_extreme_values_are_read),
		cmocka_unit_test(test_what_is_no_integer_is_no_stamp),
		cmocka_unit_test(test_other_numbers_and_digits_are_read),
		cmocka_unit_test(test_a_body_of_plain_bytes_is_found),
		cmocka_unit_test(test_a_body_that_does_not_end_the_message_is_not_plain),
		cmocka_unit_test(test_every_layout_may_follow_every_other),
		cmocka_unit_test(test_a_change_of_any_byte_around_the_values_is_noticed),
		cmocka_unit_test(test_a_binary_value_that_looks_like_a_stamp_is_not_one),
		cmocka_unit_test(test_the_template_is_read_back),
		cmocka_unit_test(test_of_a_long_message_the_prefix_is_enough),
		cmocka_unit_test(test_a_prefix_longer_than_what_is_kept_is_fine),
		cmocka_unit_test(test_a_stamp_around_the_end_of_the_prefix_is_found_or_missed),
		cmocka_unit_test(test_a_message_may_end_anywhere),
		cmocka_unit_test(test_a_damaged_message_is_read_as_by_a_new_reader),
		cmocka_unit_test(test_the_id_may_differ),
		cmocka_unit_test(test_where_the_body_starts),
		cmocka_unit_test(test_nothing_at_all_has_no_stamp),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
