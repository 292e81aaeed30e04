#include "encoding.h"

#define CODE_DESCRIBED 0x00

/* The upper half of a format code says how the value is laid out: these many bytes. */
static const uint8_t FIXED_BYTES[16] = {[0x5] = 1, [0x6] = 2, [0x7] = 4, [0x8] = 8, [0x9] = 16};

/* Kinds by code, which begin with 1; 0: no such code. */
#define KIND(NAME) (ENCODING_##NAME + 1)
static const uint8_t KINDS[256] = {
	[CODE_DESCRIBED] = KIND(DESCRIBED),
	[0x40] = KIND(NULL),
	[0x41] = KIND(BOOLEAN),
	[0x42] = KIND(BOOLEAN),
	[0x43] = KIND(UNSIGNED),
	[0x44] = KIND(UNSIGNED),
	[0x45] = KIND(LIST),
	[0x50] = KIND(UNSIGNED),
	[0x51] = KIND(SIGNED),
	[0x52] = KIND(UNSIGNED),
	[0x53] = KIND(UNSIGNED),
	[0x54] = KIND(SIGNED),
	[0x55] = KIND(SIGNED),
	[0x56] = KIND(BOOLEAN),
	[0x60] = KIND(UNSIGNED),
	[0x61] = KIND(SIGNED),
	[0x70] = KIND(UNSIGNED),
	[0x71] = KIND(SIGNED),
	[0x72] = KIND(FLOAT),
	[0x73] = KIND(CHAR),
	[0x74] = KIND(DECIMAL),
	[0x80] = KIND(UNSIGNED),
	[0x81] = KIND(SIGNED),
	[0x82] = KIND(DOUBLE),
	[0x83] = KIND(TIMESTAMP),
	[0x84] = KIND(DECIMAL),
	[0x94] = KIND(DECIMAL),
	[0x98] = KIND(UUID),
	[0xa0] = KIND(BINARY),
	[0xa1] = KIND(STRING),
	[0xa3] = KIND(SYMBOL),
	[0xb0] = KIND(BINARY),
	[0xb1] = KIND(STRING),
	[0xb3] = KIND(SYMBOL),
	[0xc0] = KIND(LIST),
	[0xc1] = KIND(MAP),
	[0xd0] = KIND(LIST),
	[0xd1] = KIND(MAP),
	[0xe0] = KIND(ARRAY),
	[0xf0] = KIND(ARRAY),
};

/* Reads a number of BYTES, at most eight; false if they are not there. */
static bool read_number(struct encoding_cursor *c, size_t bytes, uint64_t *number)
{
	if ((size_t)(c->end - c->at) < bytes)
		return false;
	*number = 0;
	for (size_t i = 0; i < bytes; i++)
		*number = *number << 8 | (unsigned char)*c->at++;
	return true;
}

/* BYTES of V are next. */
static bool read_bytes(struct encoding_cursor *c, size_t bytes, struct encoding_value *v)
{
	if ((size_t)(c->end - c->at) < bytes)
		return false;
	v->bytes = c->at;
	v->length = bytes;
	c->at += bytes;
	return true;
}

/* Numbers and what else has a width of its own. */
static bool read_fixed(struct encoding_cursor *c, unsigned char code, struct encoding_value *v)
{
	size_t bytes = FIXED_BYTES[code >> 4];
	if (v->kind == ENCODING_DECIMAL || v->kind == ENCODING_UUID)
		return read_bytes(c, bytes, v);
	if (!read_number(c, bytes, &v->number))
		return false;
	unsigned unused = 64 - 8 * (unsigned)bytes;
	if (v->kind == ENCODING_SIGNED)
		v->number = (uint64_t)((int64_t)(v->number << unused) >> unused);
	if (code == 0x41) /* true, in no byte */
		v->number = 1;
	return true;
}

/* Lists, maps and arrays: a size, in which a count is included, and what they hold. */
static bool read_compound(struct encoding_cursor *c, size_t width, struct encoding_value *v)
{
	uint64_t size, count;
	if (!read_number(c, width, &size) || !read_bytes(c, size, v))
		return false;
	struct encoding_cursor inside = encoding_enter(v);
	if (!read_number(&inside, width, &count))
		return false;
	v->count = (uint32_t)count;
	if (v->kind == ENCODING_ARRAY) {
		/* one with a descriptor is legal, and nobody uses it */
		if (inside.at == inside.end || (v->element = (unsigned char)*inside.at++) == 0)
			return false;
	}
	v->bytes = inside.at;
	v->length = (size_t)(inside.end - inside.at);
	return true;
}

/* The upper half of the code says how the value is laid out. */
bool encoding_read_as(struct encoding_cursor *c, unsigned char code, struct encoding_value *v)
{
	uint64_t length;
	bool good = KINDS[code];
	*v = (struct encoding_value){.kind = good ? KINDS[code] - 1 : ENCODING_NULL, .bytes = ""};
	switch (code >> 4) {
	case 0xa: good = good && read_number(c, 1, &length) && read_bytes(c, length, v); break;
	case 0xb: good = good && read_number(c, 4, &length) && read_bytes(c, length, v); break;
	case 0xc:
	case 0xe: good = good && read_compound(c, 1, v); break;
	case 0xd:
	case 0xf: good = good && read_compound(c, 4, v); break;
	default: good = good && read_fixed(c, code, v);
	}
	if (!good) {
		*v = (struct encoding_value){.kind = ENCODING_NULL, .bytes = ""};
		c->at = c->end;
	}
	return good;
}

/* The format code is the first byte. */
bool encoding_read(struct encoding_cursor *c, struct encoding_value *v)
{
	*v = (struct encoding_value){.bytes = ""};
	if (c->at == c->end)
		return false;
	unsigned char code = (unsigned char)*c->at++;
	return encoding_read_as(c, code, v);
}

/* Three values are read: the mark of a described one, its descriptor, and V. */
bool encoding_read_section(
	struct encoding_cursor *c, uint64_t *descriptor, struct encoding_value *v)
{
	bool good = encoding_read(c, v) && v->kind == ENCODING_DESCRIBED && encoding_read(c, v)
		&& v->kind == ENCODING_UNSIGNED;
	*descriptor = v->number;
	if (good && encoding_read(c, v))
		return true;
	c->at = c->end;
	return false;
}
