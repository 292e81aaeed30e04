#define _GNU_SOURCE
#include "stamp.h"

#include "encoding.h"
#include "section.h"

#include <math.h>

/* `seen` is not read before it is written. */
void stamp_reader_create(struct stamp_reader *r)
{
	memset(r, 0, offsetof(struct stamp_reader, seen));
	r->data = pn_data(16);
}

/* Frees the decoder. */
void stamp_reader_destroy(struct stamp_reader *r)
{
	pn_data_free(r->data);
	r->data = NULL;
}

/* The descriptor of the section that starts at BYTES, and its own length in *DESCRIPTOR_BYTES. */
static enum section section_at(const char *bytes, size_t length, size_t *descriptor_bytes)
{
	const unsigned char *b = (const unsigned char *)bytes;
	if (length >= 3 && b[0] == 0x00 && b[1] == 0x53) { /* described, smallulong */
		*descriptor_bytes = 3;
		return b[2];
	}
	if (length >= 10 && b[0] == 0x00 && b[1] == 0x80 && big_endian_load(bytes + 2) <= 0xff) {
		*descriptor_bytes = 10; /* described, ulong */
		return big_endian_load(bytes + 2);
	}
	return SECTION_NONE;
}

/* Goes to the value of the section that R->data holds; false if it is not a described one. */
static bool enter_section(pn_data_t *data)
{
	pn_data_rewind(data);
	return pn_data_next(data) && pn_data_type(data) == PN_DESCRIBED && pn_data_enter(data)
		&& pn_data_next(data) && pn_data_next(data);
}

/* Fields are counted from 1. A broker that does not count deliveries says with an explicit "not the
 * first to acquire it" that there was one before; whoever counts may say so of all messages. */
static void read_header(pn_data_t *data, struct stamp *stamp)
{
	enum { FIRST_ACQUIRER = 4, DELIVERY_COUNT = 5 };
	if (!enter_section(data) || pn_data_type(data) != PN_LIST || !pn_data_enter(data))
		return;
	for (int field = 1; pn_data_next(data); field++)
		if (field == FIRST_ACQUIRER && pn_data_type(data) == PN_BOOL)
			stamp->redelivered = !pn_data_get_bool(data);
		else if (field == DELIVERY_COUNT && pn_data_type(data) == PN_UINT)
			stamp->redelivered = pn_data_get_uint(data) > 0;
}

/* Digits, and a sign in front of them. */
static bool read_digits(pn_bytes_t text, uint64_t *value)
{
	bool negative = text.size && *text.start == '-';
	size_t at = negative;
	*value = 0;
	for (; at < text.size; at++) {
		unsigned digit = (unsigned char)text.start[at] - (unsigned)'0';
		if (digit > 9 || __builtin_mul_overflow(*value, 10, value)
			|| __builtin_add_overflow(*value, digit, value))
			return false;
	}
	if (negative && *value > INT64_MAX)
		return false;
	*value = negative ? -*value : *value;
	return text.size > negative;
}

/* A number without a fraction. */
static bool read_floating(double number, uint64_t *value)
{
	if (number >= -0x1p63 && number < 0x1p63)
		*value = (uint64_t)(int64_t)number;
	else if (number >= 0 && number < 0x1p64)
		*value = (uint64_t)number;
	else
		return false;
	return trunc(number) == number;
}

/* Whatever number the current node is, as 64 bits. */
static bool read_integer(pn_data_t *data, uint64_t *value)
{
	switch (pn_data_type(data)) {
	case PN_ULONG: *value = pn_data_get_ulong(data); return true;
	case PN_UINT: *value = pn_data_get_uint(data); return true;
	case PN_USHORT: *value = pn_data_get_ushort(data); return true;
	case PN_UBYTE: *value = pn_data_get_ubyte(data); return true;
	case PN_LONG: *value = (uint64_t)pn_data_get_long(data); return true;
	case PN_TIMESTAMP: *value = (uint64_t)pn_data_get_timestamp(data); return true;
	case PN_INT: *value = (uint64_t)(int64_t)pn_data_get_int(data); return true;
	case PN_SHORT: *value = (uint64_t)(int64_t)pn_data_get_short(data); return true;
	case PN_BYTE: *value = (uint64_t)(int64_t)pn_data_get_byte(data); return true;
	case PN_FLOAT: return read_floating((double)pn_data_get_float(data), value);
	case PN_DOUBLE: return read_floating(pn_data_get_double(data), value);
	case PN_STRING: return read_digits(pn_data_get_string(data), value);
	default: return false;
	}
}

static bool is_key(pn_data_t *data, const char *key)
{
	if (pn_data_type(data) != PN_STRING)
		return false;
	pn_bytes_t name = pn_data_get_string(data);
	return name.size == 2 && !memcmp(name.start, key, 2);
}

static void read_properties(pn_data_t *data, struct stamp *stamp)
{
	if (!enter_section(data) || pn_data_type(data) != PN_MAP || !pn_data_enter(data))
		return;
	uint64_t value;
	while (pn_data_next(data)) {
		bool sn = is_key(data, "sn"), ts = is_key(data, "ts");
		if (!pn_data_next(data))
			return;
		if (sn && read_integer(data, &value)) {
			stamp->has_sn = true;
			stamp->sn = value;
		} else if (ts && read_integer(data, &value)) {
			stamp->has_ts = true;
			stamp->ts = (int64_t)value;
		}
	}
}

/* Where VALUE stands in eight bytes behind its KEY; 0 if it is encoded in another way. */
static size_t find_value(const char *bytes, size_t from, size_t to, const char *key, uint64_t value)
{
	char pattern[4] = {(char)0xa1, 2, key[0], key[1]}; /* str8-utf8 of two bytes */
	const char *at = memmem(bytes + from, to - from, pattern, sizeof pattern);
	if (!at || at + sizeof pattern + 9 > bytes + to)
		return 0;
	unsigned char code = (unsigned char)at[sizeof pattern];
	const char *digits = at + sizeof pattern + 1;
	if ((code != 0x80 && code != 0x81 && code != 0x83) || big_endian_load(digits) != value)
		return 0;
	return (size_t)(digits - bytes);
}

/* Notes what content there is behind a body section's descriptor at AT, and from where on two
 * messages may differ and yet be alike: its length and its bytes. */
static void read_body(struct stamp_reader *r, const char *bytes, size_t prefix, size_t at)
{
	r->length_bytes = 0;
	if (at < prefix)
		switch ((unsigned char)bytes[at]) {
		case 0xa0:
		case 0xa1:
		case 0xa3: r->length_bytes = 1; break; /* vbin8, str8, sym8 */
		case 0xb0:
		case 0xb1:
		case 0xb3: r->length_bytes = 4; break; /* vbin32, str32, sym32 */
		}
	r->looked_at = at < prefix ? at + 1 : 0;
	r->body_at = r->length_bytes ? at + 1 + r->length_bytes : at;
}

/* Notes where the message id stands, the first field of the section of properties at AT. Whatever
 * other bytes are there, the message is the same to read. */
static void find_id(struct stamp_reader *r, const char *bytes, size_t at, size_t end)
{
	struct encoding_cursor c = {bytes + at, bytes + end};
	struct encoding_value section, id;
	uint64_t descriptor;
	if (!encoding_read_section(&c, &descriptor, &section) || section.kind != ENCODING_LIST)
		return;
	c = encoding_enter(&section);
	bool is_ulong = c.at < c.end && (unsigned char)*c.at == 0x80;
	if (!encoding_read(&c, &id))
		return;
	if (is_ulong)
		id.length = 8;
	else if (id.kind != ENCODING_STRING && id.kind != ENCODING_BINARY
		&& id.kind != ENCODING_UUID)
		return;
	r->id_end = (size_t)(c.at - bytes);
	r->id_at = r->id_end - id.length;
}

/* Whether other values in these places would be read as sn and ts: they may also stand in
 * another value that looks alike. */
static bool are_places(struct stamp_reader *r, const char *bytes, size_t from, size_t to)
{
	char copy[STAMP_PREFIX_MAX];
	struct stamp stamp = {0};
	uint64_t sn = ~r->last.sn, ts = ~(uint64_t)r->last.ts;
	if (!r->sn_at && !r->ts_at)
		return true;
	if (to - from > sizeof copy)
		return false;
	memcpy(copy, bytes + from, to - from);
	if (r->sn_at)
		big_endian_store(copy + r->sn_at - from, sn);
	if (r->ts_at)
		big_endian_store(copy + r->ts_at - from, ts);
	pn_data_clear(r->data);
	if (pn_data_decode(r->data, copy, to - from) != (ssize_t)(to - from))
		return false;
	read_properties(r->data, &stamp);
	return (!r->sn_at || stamp.sn == sn) && (!r->ts_at || stamp.ts == (int64_t)ts);
}

/* Decides whether and how the next message may be compared with this one. */
static void remember(struct stamp_reader *r, const char *bytes, size_t section, size_t section_end)
{
	const struct stamp *s = &r->last;
	r->sn_at = s->has_sn ? find_value(bytes, section, section_end, "sn", s->sn) : 0;
	r->ts_at = s->has_ts ? find_value(bytes, section, section_end, "ts", (uint64_t)s->ts) : 0;
	if ((s->has_sn && !r->sn_at) || (s->has_ts && !r->ts_at)
		|| !are_places(r, bytes, section, section_end)) {
		r->looked_at = 0; /* short encodings change their length with the value */
		return;
	}
	size_t sn = r->sn_at ? r->sn_at : r->looked_at, ts = r->ts_at ? r->ts_at : r->looked_at;
	r->hole[0] = sn < ts ? sn : ts;
	r->hole[1] = sn < ts ? ts : sn;
	if (r->id_end > r->hole[0])
		r->id_at = r->id_end = 0;
	memcpy(r->seen, bytes, r->looked_at);
}

/* By the sizes in front of the sections' values, which are lists and maps. */
size_t stamp_head_bytes(const char *bytes, size_t prefix)
{
	size_t at = 0, descriptor_bytes = 0;
	while (at < prefix) {
		enum section section = section_at(bytes + at, prefix - at, &descriptor_bytes);
		if (!section || section >= SECTION_DATA)
			break;
		const char *value = bytes + at + descriptor_bytes;
		if (bytes + prefix - value < 5)
			return prefix + 5;
		uint32_t size;
		memcpy(&size, value + 1, sizeof size);
		switch ((unsigned char)*value) {
		case 0xc0:
		case 0xc1: at += descriptor_bytes + 2 + (unsigned char)value[1]; break;
		case 0xd0:
		case 0xd1: at += descriptor_bytes + 5 + be32toh(size); break;
		default: at += descriptor_bytes + 1; /* an empty list, or nothing known */
		}
	}
	return at;
}

/* Section by section, up to the body. */
void stamp_decode(struct stamp_reader *r, const char *bytes, size_t prefix, size_t length)
{
	size_t at = 0, descriptor_bytes = 0, properties = 0, properties_end = 0;
	r->last = (struct stamp){0};
	r->looked_at = r->body_at = r->length_bytes = 0;
	r->id_at = r->id_end = 0;
	r->decodes++;
	while (at < prefix) {
		enum section section = section_at(bytes + at, prefix - at, &descriptor_bytes);
		r->body_section_at = at;
		if (section_is_body(section)) {
			read_body(r, bytes, prefix, at + descriptor_bytes);
			break;
		}
		pn_data_clear(r->data);
		ssize_t used = section ? pn_data_decode(r->data, bytes + at, prefix - at) : -1;
		if (used <= 0)
			return; /* not a message, or its stamp lies beyond the prefix */
		if (section == SECTION_HEADER)
			read_header(r->data, &r->last);
		if (section == SECTION_PROPERTIES)
			find_id(r, bytes, at, at + (size_t)used);
		if (section == SECTION_APPLICATION_PROPERTIES) {
			read_properties(r->data, &r->last);
			properties = at;
			properties_end = at + (size_t)used;
		}
		at += (size_t)used;
	}
	if (!r->body_at) /* there is no body */
		r->body_at = r->body_section_at = at;
	r->last.content_bytes = length > r->body_at ? length - r->body_at : 0;
	if (r->looked_at && r->looked_at <= sizeof r->seen && r->body_at <= length)
		remember(r, bytes, properties, properties_end);
	else
		r->looked_at = 0;
}
