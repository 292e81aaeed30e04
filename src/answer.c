#define _GNU_SOURCE
#include "answer.h"

#include "encoding.h"
#include "fatal.h"
#include "section.h"

#include <stdlib.h>

/* Fields of the section of properties (AMQP 1.0 part 3, section 3.2.4), from 0 on. */
enum { FIELD_MESSAGE_ID = 0, FIELD_REPLY_TO = 4, FIELD_CORRELATION_ID = 5, FIELDS };

/* Bytes of a head besides its correlation id. */
#define FRAME_BYTES 64

/* A message, as far as an answer is concerned. */
struct question {
	const char *id; /* with its format code */
	size_t id_bytes;
	const char *reply_to;
	size_t reply_to_bytes;
};

/* ---- what is asked ---- */

/* Types that a message id may have. */
static bool is_id(const struct encoding_value *v, char code)
{
	switch (v->kind) {
	case ENCODING_STRING:
	case ENCODING_BINARY:
	case ENCODING_UUID: return true;
	case ENCODING_UNSIGNED: return code == (char)0x80 || code == 0x53 || code == 0x44;
	default: return false;
	}
}

/* Notes one field, which is at AT. */
static void read_field(struct question *q, unsigned field, const char *at, size_t bytes,
	const struct encoding_value *v)
{
	bool id = field == FIELD_MESSAGE_ID || (field == FIELD_CORRELATION_ID && !q->id);
	if (id && is_id(v, *at)) {
		q->id = at;
		q->id_bytes = bytes;
	}
	if (field == FIELD_REPLY_TO && v->kind == ENCODING_STRING) {
		q->reply_to = v->bytes;
		q->reply_to_bytes = v->length;
	}
}

/* Up to the body. A field that is no simple value is the last that is looked at. */
static struct question read_question(const char *bytes, size_t length)
{
	struct question q = {0};
	struct encoding_cursor c = {bytes, bytes + length};
	struct encoding_value v;
	uint64_t descriptor;
	while (encoding_read_section(&c, &descriptor, &v)) {
		if (descriptor != SECTION_PROPERTIES || v.kind != ENCODING_LIST)
			continue;
		struct encoding_cursor fields = encoding_enter(&v);
		const char *at = fields.at;
		for (unsigned i = 0; i < FIELDS && encoding_read(&fields, &v); i++) {
			if (v.kind == ENCODING_DESCRIBED)
				break;
			read_field(&q, i, at, (size_t)(fields.at - at), &v);
			at = fields.at;
		}
		break;
	}
	return q;
}

static void set_address(struct answer_form *f, const struct question *q)
{
	size_t length = q->reply_to_bytes;
	bool good = q->reply_to && length <= ANSWER_ADDRESS_MAX && !memchr(q->reply_to, 0, length);
	if (good)
		memcpy(f->address, q->reply_to, length);
	f->address[good ? length : 0] = '\0';
}

/* ---- what is answered ---- */

static void reserve(struct answer_form *f, size_t bytes)
{
	if (bytes <= f->head_capacity)
		return;
	f->head = realloc(f->head, bytes);
	if (!f->head)
		fatal(EXIT_INTERNAL, "answer");
	f->head_capacity = bytes;
}

static void put(struct answer_form *f, const char *bytes, size_t length)
{
	memcpy(f->head + f->head_bytes, bytes, length);
	f->head_bytes += length;
}

/* The section of properties: five fields that are null, and the correlation id. */
static void put_id(struct answer_form *f, const struct question *q)
{
	static const char NULLS[FIELD_CORRELATION_ID + 1] = "@@@@@"; /* 0x40 is null */
	size_t size = 1 + FIELD_CORRELATION_ID + q->id_bytes;        /* of a list8, its count too */
	if (size <= UINT8_MAX) {
		char list8[] = {0x00, 0x53, SECTION_PROPERTIES, (char)0xc0, (char)size, FIELDS};
		put(f, list8, sizeof list8);
	} else {
		uint32_t size_and_count[] = {htobe32((uint32_t)size + 3), htobe32(FIELDS)};
		put(f, "\0\x53\x73\xd0", 4);
		put(f, (const char *)size_and_count, sizeof size_and_count);
	}
	put(f, NULLS, FIELD_CORRELATION_ID);
	put(f, q->id, q->id_bytes);
}

/* A key and a value of eight bytes. Returns where they are. */
static size_t put_value(struct answer_form *f, const char *key_and_code)
{
	put(f, key_and_code, 5);
	f->head_bytes += 8;
	return f->head_bytes - 8;
}

/* The section of application properties. */
static void put_stamp(struct answer_form *f, const struct stamp *stamp)
{
	int values = stamp->has_sn + stamp->has_ts;
	if (!values)
		return;
	char map8[] = {0x00, 0x53, SECTION_APPLICATION_PROPERTIES, (char)0xc1,
		(char)(1 + values * 13), (char)(2 * values)};
	put(f, map8, sizeof map8);
	if (stamp->has_sn)
		f->sn_at = put_value(f, "\xa1\2sn\x80");
	if (stamp->has_ts)
		f->ts_at = put_value(f, "\xa1\2ts\x81");
}

/* Where messages that look alike may differ, there is a place to be filled. */
void answer_form_make(struct answer_form *f, const struct stamp_reader *r, const char *bytes)
{
	struct question q = read_question(bytes, r->body_section_at);
	f->decodes = r->decodes;
	f->head_bytes = f->id_at = f->sn_at = f->ts_at = 0;
	set_address(f, &q);
	reserve(f, FRAME_BYTES + q.id_bytes);
	if (q.id)
		put_id(f, &q);
	if (q.id && r->id_end && q.id + q.id_bytes == bytes + r->id_end)
		f->id_at = f->head_bytes - (r->id_end - r->id_at);
	put_stamp(f, &r->last);
}

/* The id has the length that it had. */
void answer_form_fill(struct answer_form *f, const struct stamp_reader *r, const char *bytes)
{
	if (f->id_at)
		memcpy(f->head + f->id_at, bytes + r->id_at, r->id_end - r->id_at);
	if (f->sn_at)
		big_endian_store(f->head + f->sn_at, r->last.sn);
	if (f->ts_at)
		big_endian_store(f->head + f->ts_at, (uint64_t)r->last.ts);
}

/* The usual body is one section, and the last. */
size_t answer_body_end(const struct stamp_reader *r, const char *bytes, size_t length)
{
	size_t body_bytes;
	if (stamp_body(r, bytes, length, &body_bytes))
		return length;
	struct encoding_cursor c = {bytes + r->body_section_at, bytes + length};
	struct encoding_value v;
	uint64_t descriptor;
	const char *end = c.at;
	while (encoding_read_section(&c, &descriptor, &v) && section_is_body(descriptor))
		end = c.at;
	return (size_t)(end - bytes);
}

/* It is empty then. */
void answer_form_free(struct answer_form *f)
{
	free(f->head);
	*f = (struct answer_form){0};
}
