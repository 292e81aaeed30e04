#include "text.h"

#include "encoding.h"
#include "fatal.h"
#include "section.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Levels of lists, maps and the like; what is deeper is "...". */
#define LEVELS_MAX 32

/* ---- text that grows ---- */

static char *reserve(struct text *t, size_t bytes)
{
	if (t->capacity - t->length <= bytes) { /* so that there always is a buffer */
		t->capacity = 2 * t->capacity + bytes + 256;
		t->bytes = realloc(t->bytes, t->capacity);
		if (!t->bytes)
			fatal(EXIT_INTERNAL, "text of a message");
	}
	return t->bytes + t->length;
}

static void add_bytes(struct text *t, const char *bytes, size_t length)
{
	memcpy(reserve(t, length), bytes, length);
	t->length += length;
}

static void add(struct text *t, const char *string)
{
	add_bytes(t, string, strlen(string));
}

/* Short ones. */
__attribute__((format(printf, 2, 3))) static void add_format(
	struct text *t, const char *format, ...)
{
	char line[64];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	add(t, line);
}

/* Bytes that are in SPECIAL, or not printable ASCII, in hexadecimal. */
static void add_escaped(struct text *t, const char *bytes, size_t length, const char *special)
{
	char *to = reserve(t, 4 * length);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)bytes[i];
		if (c >= ' ' && c <= '~' && !strchr(special, c)) {
			*to++ = (char)c;
		} else {
			const char *const digits = "0123456789abcdef";
			*to++ = '\\';
			*to++ = 'x';
			*to++ = digits[c >> 4];
			*to++ = digits[c & 15];
		}
	}
	t->length = (size_t)(to - t->bytes);
}

static void add_hexadecimal(struct text *t, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		add_format(t, "%02x", (unsigned)(unsigned char)bytes[i]);
}

/* ---- values ---- */

/* As libqpid-proton writes a value, or plainly: strings without quotes, "key:value" in a map. */
enum notation { NOTATION_PROTON, NOTATION_PLAIN };

static void add_floating(struct text *t, const struct encoding_value *v)
{
	float single;
	double number;
	uint32_t bits = (uint32_t)v->number;
	memcpy(&single, &bits, sizeof single);
	memcpy(&number, &v->number, sizeof number);
	add_format(t, "%.*g", v->kind == ENCODING_FLOAT ? 7 : 15,
		v->kind == ENCODING_FLOAT ? (double)single : number);
}

static void add_uuid(struct text *t, const char *bytes)
{
	static const size_t PARTS[] = {4, 2, 2, 2, 6};
	for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; bytes += PARTS[i++]) {
		if (i)
			add(t, "-");
		add_hexadecimal(t, bytes, PARTS[i]);
	}
}

/* A string, a symbol or binary. */
static void add_string(struct text *t, const struct encoding_value *v, enum notation notation)
{
	if (notation == NOTATION_PLAIN) {
		add_escaped(t, v->bytes, v->length, "");
		return;
	}
	if (v->kind != ENCODING_STRING)
		add(t, v->kind == ENCODING_SYMBOL ? ":" : "b");
	add(t, "\"");
	add_escaped(t, v->bytes, v->length, "\"\\");
	add(t, "\"");
}

/* All but lists, maps, arrays and what is described. */
static void add_scalar(struct text *t, const struct encoding_value *v, enum notation notation)
{
	switch (v->kind) {
	case ENCODING_NULL: add(t, "null"); break;
	case ENCODING_BOOLEAN: add(t, v->number ? "true" : "false"); break;
	case ENCODING_UNSIGNED: add_format(t, "%" PRIu64, v->number); break;
	case ENCODING_SIGNED:
	case ENCODING_TIMESTAMP: add_format(t, "%" PRId64, (int64_t)v->number); break;
	case ENCODING_FLOAT:
	case ENCODING_DOUBLE: add_floating(t, v); break;
	case ENCODING_CHAR:
		if (v->number >= ' ' && v->number <= '~')
			add_format(t, "%c", (int)v->number);
		else
			add_format(t, "U+%04" PRIX64, v->number);
		break;
	case ENCODING_DECIMAL:
		add_format(t, "D%zu(", 8 * v->length);
		add_hexadecimal(t, v->bytes, v->length);
		add(t, ")");
		break;
	case ENCODING_UUID: add_uuid(t, v->bytes); break;
	default: add_string(t, v, notation);
	}
}

/* What stands in front of item I of a list, a map or an array. */
static const char *separator(enum encoding_kind kind, uint64_t i, enum notation notation)
{
	if (!i)
		return "";
	if (kind == ENCODING_MAP && i % 2)
		return notation == NOTATION_PLAIN ? ":" : "=";
	return ", ";
}

static void add_value(struct text *t, struct encoding_cursor *c, const struct encoding_value *v,
	enum notation notation, unsigned levels);

/* All that a list, a map or an array holds. Elements of an array that take no bytes are not
 * repeated: there may be billions of them. */
static void add_items(
	struct text *t, const struct encoding_value *v, enum notation notation, unsigned levels)
{
	struct encoding_cursor inside = encoding_enter(v);
	struct encoding_value item;
	bool array = v->kind == ENCODING_ARRAY;
	bool no_bytes = array && v->element >> 4 == 0x4;
	if (no_bytes) /* at most one */
		inside.end = inside.at;
	for (uint64_t i = 0; inside.at < inside.end || (no_bytes && v->count && !i); i++) {
		add(t, separator(v->kind, i, notation));
		if (array ? encoding_read_as(&inside, v->element, &item)
			  : encoding_read(&inside, &item))
			add_value(t, &inside, &item, notation, levels);
		else
			add(t, "...");
	}
}

/* Writes V, and if it is described what C has next, which is part of it. It calls itself, at most
 * for so many LEVELS. */
static void add_value(struct text *t, struct encoding_cursor *c, const struct encoding_value *v,
	enum notation notation, unsigned levels)
{
	static const char *const OPENING[] = {
		[ENCODING_LIST] = "[", [ENCODING_MAP] = "{", [ENCODING_ARRAY] = "@["};
	if (v->kind < ENCODING_LIST) {
		add_scalar(t, v, notation);
	} else if (!levels) {
		add(t, "...");
		if (v->kind == ENCODING_DESCRIBED) /* who knows where it ends */
			c->at = c->end;
	} else if (v->kind == ENCODING_DESCRIBED) {
		struct encoding_value part;
		add(t, "@");
		for (int i = 0; i < 2 && encoding_read(c, &part); i++) {
			add(t, i ? " " : "");
			add_value(t, c, &part, notation, levels - 1);
		}
	} else {
		add(t, OPENING[v->kind]);
		add_items(t, v, notation, levels - 1);
		add(t, v->kind == ENCODING_MAP ? "}" : "]");
	}
}

/* ---- body ---- */

static bool has_bytes(const struct encoding_value *v)
{
	return v->kind == ENCODING_BINARY || v->kind == ENCODING_STRING
		|| v->kind == ENCODING_SYMBOL;
}

/* The usual case, one section, is not copied. */
bool text_body(
	struct text *t, const char *message, size_t length, const char **body, size_t *body_length)
{
	struct encoding_cursor c = {message, message + length};
	struct encoding_value v;
	uint64_t section;
	bool plain = true, made = false;
	*body = "";
	*body_length = t->length = 0;
	while (c.at < c.end) {
		const char *from = c.at;
		bool good = encoding_read_section(&c, &section, &v);
		if (good && (!section_is_body(section) || v.kind == ENCODING_NULL))
			continue;
		bool bytes = good && has_bytes(&v);
		plain = plain && bytes;
		if (bytes && !made && !*body_length) {
			*body = v.bytes;
			*body_length = v.length;
			continue;
		}
		if (!made)
			add_bytes(t, *body, *body_length);
		made = true;
		if (bytes)
			add_bytes(t, v.bytes, v.length);
		else if (good)
			add_value(t, &c, &v, NOTATION_PROTON, LEVELS_MAX);
		else
			add_escaped(t, from, (size_t)(c.end - from), "");
	}
	if (made) {
		*body = t->bytes;
		*body_length = t->length;
	}
	return plain;
}

/* ---- headers ---- */

/* Fields of two sections, which are lists (AMQP 1.0 part 3, sections 3.2.1 and 3.2.4). */
enum { DURABLE, PRIORITY, TTL, FIRST_ACQUIRER, DELIVERY_COUNT, HEADER_FIELDS };
enum {
	MESSAGE_ID,
	USER_ID,
	TO,
	SUBJECT,
	REPLY_TO,
	CORRELATION_ID,
	CONTENT_TYPE,
	CONTENT_ENCODING,
	EXPIRY_TIME,
	CREATION_TIME,
	GROUP_ID,
	GROUP_SEQUENCE,
	REPLY_TO_GROUP_ID,
	PROPERTY_FIELDS
};

/* What a message has; the rest is null. */
struct headers {
	struct encoding_value header[HEADER_FIELDS];
	struct encoding_value properties[PROPERTY_FIELDS];
	struct encoding_value application; /* properties, a map */
};

static void read_fields(
	const struct encoding_value *list, struct encoding_value *fields, size_t count)
{
	struct encoding_cursor inside = encoding_enter(list);
	if (list->kind != ENCODING_LIST)
		return;
	for (size_t i = 0; i < count && encoding_read(&inside, &fields[i]); i++)
		if (fields[i].kind >= ENCODING_LIST) /* none of them may be */
			fields[i].kind = ENCODING_NULL;
}

static void read_headers(struct headers *h, const char *message, size_t length)
{
	struct encoding_cursor c = {message, message + length};
	struct encoding_value v;
	uint64_t section;
	*h = (struct headers){.application.kind = ENCODING_NULL};
	while (encoding_read_section(&c, &section, &v) && !section_is_body(section)) {
		if (section == SECTION_HEADER)
			read_fields(&v, h->header, HEADER_FIELDS);
		else if (section == SECTION_PROPERTIES)
			read_fields(&v, h->properties, PROPERTY_FIELDS);
		else if (section == SECTION_APPLICATION_PROPERTIES && v.kind == ENCODING_MAP)
			h->application = v;
	}
}

/* Nothing, if it is not there. */
static void add_line(struct text *t, const char *name, const struct encoding_value *v)
{
	if (v->kind == ENCODING_NULL)
		return;
	struct encoding_cursor nothing_more = {v->bytes, v->bytes};
	add(t, name);
	add(t, ": ");
	add_value(t, &nothing_more, v, NOTATION_PLAIN, LEVELS_MAX);
	add(t, "\n");
}

/* In qpid-receive's order; what it does not print comes behind that. */
void text_headers(struct text *t, const char *message, size_t length)
{
	struct headers h;
	read_headers(&h, message, length);
	const struct encoding_value *p = h.properties;
	t->length = 0;
	add_line(t, "Subject", &p[SUBJECT]);
	add_line(t, "ReplyTo", &p[REPLY_TO]);
	add_line(t, "MessageId", &p[MESSAGE_ID]);
	add_line(t, "CorrelationId", &p[CORRELATION_ID]);
	add_line(t, "UserId", &p[USER_ID]);
	add_line(t, "TTL", &h.header[TTL]);
	add_line(t, "Priority", &h.header[PRIORITY]);
	if (h.header[DURABLE].number)
		add(t, "Durable: true\n");
	if (h.header[DELIVERY_COUNT].number)
		add(t, "Redelivered: true\n");
	add_line(t, "Properties", &h.application);
	add_line(t, "ContentType", &p[CONTENT_TYPE]);
	add_line(t, "ContentEncoding", &p[CONTENT_ENCODING]);
	add_line(t, "To", &p[TO]);
	add_line(t, "ExpiryTime", &p[EXPIRY_TIME]);
	add_line(t, "CreationTime", &p[CREATION_TIME]);
	add_line(t, "GroupId", &p[GROUP_ID]);
	add_line(t, "GroupSequence", &p[GROUP_SEQUENCE]);
	add_line(t, "ReplyToGroupId", &p[REPLY_TO_GROUP_ID]);
	add(t, "\n");
}

/* It may be used again. */
void text_destroy(struct text *t)
{
	free(t->bytes);
	*t = (struct text){0};
}
