#define _GNU_SOURCE
#include "message.h"

#include "content_check.h"
#include "fatal.h"
#include "field.h"
#include "hex.h"

#include <stdlib.h>

/* Values so large that the library cannot choose a short encoding for them; the bytes are then
 * found by their content and overwritten. */
#define PLACEHOLDER_SN    UINT64_C(0xf1f2f3f4f5f6f7f8)
#define PLACEHOLDER_TS    INT64_C(0x71727374757677f8)
#define PLACEHOLDER_GROUP UINT32_C(0xf1f2f3f4)

/* Descriptor, code and length of a data section (AMQP 1.0 part 3, section 3.2.6). */
#define DATA_HEADER_MAX  8
#define DESCRIPTOR_BYTES 3

/* What the first sections need, if no text is long. */
#define HEAD_BYTES 512

static void check(int error)
{
	if (error)
		fatalx(EXIT_INTERNAL, "message: cannot encode: %s", pn_code(error));
}

static pn_bytes_t text_bytes(const char *text)
{
	return pn_bytes(strlen(text), text);
}

/* ---- the source ---- */

static void put_field(pn_data_t *data, const char *text)
{
	struct field field;
	const char *error = field_parse(text, &field);
	if (error)
		fatalx(EXIT_USAGE, "\"%s\" %s", text, error);
	check(pn_data_put_string(data, pn_bytes(field.key_bytes, field.key)));
	switch (field.type) {
	case FIELD_BOOLEAN: check(pn_data_put_bool(data, field.value.boolean)); break;
	case FIELD_SIGNED: check(pn_data_put_long(data, field.value.integer)); break;
	case FIELD_UNSIGNED: check(pn_data_put_ulong(data, field.value.natural)); break;
	case FIELD_FLOATING: check(pn_data_put_double(data, field.value.floating)); break;
	case FIELD_TEXT: check(pn_data_put_string(data, text_bytes(field.value.text))); break;
	}
}

/* Those with values to be patched come first. */
static void put_properties(
	pn_data_t *properties, const struct message_options *o, const char *group)
{
	pn_data_clear(properties);
	if (!o->sequence && !o->timestamp && !group && !o->property_count)
		return;
	check(pn_data_put_map(properties));
	pn_data_enter(properties);
	if (o->sequence) {
		pn_data_put_string(properties, pn_bytes(2, "sn"));
		pn_data_put_ulong(properties, PLACEHOLDER_SN);
	}
	if (o->timestamp) {
		pn_data_put_string(properties, pn_bytes(2, "ts"));
		pn_data_put_long(properties, PLACEHOLDER_TS);
	}
	if (group) {
		pn_data_put_string(properties, text_bytes(o->group_key));
		pn_data_put_string(properties, text_bytes(group));
	}
	for (size_t i = 0; i < o->property_count; i++)
		put_field(properties, o->properties[i]);
	pn_data_exit(properties);
}

/* With digits that stand for the number's. */
static void set_prefixed_id(pn_message_t *m, const char *prefix)
{
	size_t length = strlen(prefix);
	char *id = malloc(length + HEX_DIGITS);
	if (!id)
		fatal(EXIT_INTERNAL, "message id");
	memcpy(id, prefix, length);
	hex_store(id + length, PLACEHOLDER_SN);
	check(pn_message_set_id(m,
		(pn_msgid_t){.type = PN_STRING, .u.as_bytes = pn_bytes(length + HEX_DIGITS, id)}));
	free(id);
}

static pn_message_t *create_source(const struct message_options *o)
{
	pn_message_t *m = pn_message();
	if (o->durable)
		pn_message_set_durable(m, true);
	if (o->has_ttl)
		pn_message_set_ttl(m, o->ttl_ms);
	if (o->has_priority)
		pn_message_set_priority(m, o->priority);
	if (o->id_prefix)
		set_prefixed_id(m, o->id_prefix);
	else if (o->message_id && !strcmp(o->message_id, MESSAGE_ID_AUTO))
		pn_message_set_id(m, (pn_msgid_t){.type = PN_ULONG, .u.as_ulong = PLACEHOLDER_SN});
	else if (o->message_id)
		pn_message_set_id(m,
			(pn_msgid_t){.type = PN_STRING, .u.as_bytes = text_bytes(o->message_id)});
	if (o->user_id)
		pn_message_set_user_id(m, text_bytes(o->user_id));
	if (o->correlation_id)
		pn_message_set_correlation_id(m,
			(pn_msgid_t){
				.type = PN_STRING, .u.as_bytes = text_bytes(o->correlation_id)});
	pn_message_set_subject(m, o->subject);
	pn_message_set_reply_to(m, o->reply_to);
	pn_message_set_content_type(m, o->content_type);
	return m;
}

/* ---- the head ---- */

/* Encodes MESSAGE into a buffer that grows as needed. Returns the length. */
static size_t encode(pn_message_t *message, char **bytes, size_t *capacity)
{
	for (;;) {
		size_t length = *capacity;
		int error = *bytes ? pn_message_encode(message, *bytes, &length) : PN_OVERFLOW;
		if (!error)
			return length;
		if (error != PN_OVERFLOW)
			check(error);
		*capacity = *capacity ? 2 * *capacity : HEAD_BYTES;
		*bytes = realloc(*bytes, *capacity);
		if (!*bytes)
			fatal(EXIT_INTERNAL, "message of %zu bytes", *capacity);
	}
}

/* The offset of a placeholder's bytes, the first ones of that kind behind FROM. */
static size_t find_bytes(
	const struct message_template *t, size_t from, const char *pattern, size_t length)
{
	const char *at = memmem(t->head + from, t->head_bytes - from, pattern, length);
	if (!at)
		fatalx(EXIT_INTERNAL, "message: the library changed a placeholder");
	return (size_t)(at - t->head);
}

static size_t find_placeholder(const struct message_template *t, size_t from, uint64_t value)
{
	char pattern[8];
	big_endian_store(pattern, value);
	return find_bytes(t, from, pattern, sizeof pattern);
}

/* The message id, which is in front of all other texts. */
static void find_ids(struct message_template *t)
{
	const struct message_options *o = &t->options;
	char digits[HEX_DIGITS];
	hex_store(digits, PLACEHOLDER_SN);
	bool has_id = !o->id_prefix && o->message_id && !strcmp(o->message_id, MESSAGE_ID_AUTO);
	t->id_at = has_id ? find_placeholder(t, 0, PLACEHOLDER_SN) : 0;
	t->id_hex_at = o->id_prefix ? find_bytes(t, 0, digits, sizeof digits) : 0;
}

/* Before each value, and behind FROM, there is nothing that a user has written. */
static void find_values(struct message_template *t, size_t properties_at)
{
	const struct message_options *o = &t->options;
	t->sequence_at = o->sequence ? find_placeholder(t, properties_at, PLACEHOLDER_SN) : 0;
	t->timestamp_at =
		o->timestamp ? find_placeholder(t, properties_at, (uint64_t)PLACEHOLDER_TS) : 0;
	find_ids(t);
	t->group_sequence_at = 0;
	if (!o->group_name_max || o->group_key)
		return;
	/* the last field of the section before them */
	uint32_t placeholder = htobe32(PLACEHOLDER_GROUP);
	t->group_sequence_at = properties_at - sizeof placeholder;
	if (memcmp(t->head + t->group_sequence_at, &placeholder, sizeof placeholder))
		fatalx(EXIT_INTERNAL, "message: the library changed a placeholder");
}

/* The head of messages of GROUP; NULL: of none. */
static void encode_head(struct message_template *t, const char *group)
{
	const struct message_options *o = &t->options;
	pn_data_t *properties = pn_message_properties(t->source);
	if (group && !o->group_key) {
		pn_message_set_group_id(t->source, group);
		pn_message_set_group_sequence(t->source, (pn_sequence_t)PLACEHOLDER_GROUP);
		group = NULL;
	}
	pn_data_clear(properties);
	size_t properties_at = encode(t->source, &t->head, &t->head_capacity);
	put_properties(properties, o, group);
	t->head_bytes = encode(t->source, &t->head, &t->head_capacity);
	find_values(t, properties_at);
}

/* ---- the body ---- */

/* Makes a message of the head and the SECTION, of LENGTH bytes, CONTENT of which are content. */
static void join(struct message_template *t, char *section, size_t length, size_t content_bytes)
{
	t->bytes = section - t->head_bytes;
	t->length = t->head_bytes + length;
	t->content_bytes = content_bytes;
	memcpy(t->bytes, t->head, t->head_bytes);
	t->check_at = t->options.check_content ? t->length - content_bytes : 0;
	t->own_bytes = !t->body ? t->length
		: t->check_at   ? t->check_at + CONTENT_CHECK_HEADER_BYTES
				: t->length - content_bytes;
	t->has_others = t->id_at || t->id_hex_at || t->check_at;
}

/* A data section. */
void message_set_body(struct message_template *t, char *content, size_t length)
{
	bool is_short = length <= UINT8_MAX;
	size_t header_bytes = DESCRIPTOR_BYTES + (is_short ? 2 : 5);
	char *section = content - header_bytes;
	memcpy(section, "\0\x53\x75", DESCRIPTOR_BYTES);
	section[3] = is_short ? (char)0xa0 : (char)0xb0; /* vbin8, vbin32 */
	uint32_t stored = htobe32((uint32_t)length);
	if (is_short)
		section[4] = (char)length;
	else
		memcpy(section + 4, &stored, sizeof stored);
	join(t, section, header_bytes + length, length);
}

static void allocate_body(struct message_template *t, size_t length)
{
	t->body = malloc(t->reserve + length);
	if (!t->body)
		fatal(EXIT_INTERNAL, "message of %zu bytes", length);
}

static void create_data(struct message_template *t)
{
	const struct message_options *o = &t->options;
	allocate_body(t, o->content_bytes);
	char *content = t->body + t->reserve;
	if (o->check_content)
		content_check_fill(content, o->content_bytes);
	else
		memcpy(content, o->content, o->content_bytes);
	message_set_body(t, content, o->content_bytes);
}

/* An amqp-value section. */
static void create_map(struct message_template *t)
{
	const struct message_options *o = &t->options;
	pn_message_t *message = pn_message();
	char *bytes = NULL;
	size_t capacity = 0;
	size_t before = encode(message, &bytes, &capacity); /* there are sections without fields */
	pn_data_t *body = pn_message_body(message);
	check(pn_data_put_map(body));
	pn_data_enter(body);
	for (size_t i = 0; i < o->map_count; i++)
		put_field(body, o->map[i]);
	pn_data_exit(body);
	size_t length = encode(message, &bytes, &capacity) - before;
	allocate_body(t, length);
	memcpy(t->body + t->reserve, bytes + before, length);
	free(bytes);
	pn_message_free(message);
	join(t, t->body + t->reserve, length, length - DESCRIPTOR_BYTES);
}

/* ---- the whole ---- */

/* The head with the longest name of a group is the longest. */
void message_template_create(struct message_template *t, const struct message_options *options)
{
	*t = (struct message_template){.options = *options, .source = create_source(options)};
	char *longest = NULL;
	if (options->group_name_max) {
		longest = malloc(options->group_name_max + 1);
		if (!longest)
			fatal(EXIT_INTERNAL, "name of a group");
		memset(longest, 'X', options->group_name_max);
		longest[options->group_name_max] = '\0';
	}
	encode_head(t, longest);
	free(longest);
	t->reserve = t->head_bytes + DATA_HEADER_MAX;
	if (options->map_count)
		create_map(t);
	else if (options->content || options->check_content)
		create_data(t);
	t->options.content = NULL; /* is the caller's, and was copied */
}

/* Frees what create allocated. */
void message_template_destroy(struct message_template *t)
{
	pn_message_free(t->source);
	free(t->head);
	free(t->body);
	*t = (struct message_template){.bytes = NULL};
}

/* A longer or shorter head ends where the other one ended. */
void message_set_group(struct message_template *t, const char *name)
{
	size_t before = t->head_bytes;
	encode_head(t, name);
	if (t->body)
		join(t, t->bytes + before, t->length - before, t->content_bytes);
}

/* The number in other places than sn. */
void message_stamp_others(const struct message_template *t, uint64_t sn)
{
	if (t->id_at)
		big_endian_store(t->bytes + t->id_at, sn);
	if (t->id_hex_at)
		hex_store(t->bytes + t->id_hex_at, sn);
	if (t->check_at)
		content_check_number(t->bytes + t->check_at, sn);
}
