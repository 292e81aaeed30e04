#define _GNU_SOURCE
#include "message.h"

#include "fatal.h"

#include <proton/message.h>
#include <stdlib.h>

/* Values so large that the library cannot choose a short encoding for them; the bytes are then
 * found by their content and overwritten. */
#define PLACEHOLDER_SN UINT64_C(0xf1f2f3f4f5f6f7f8)
#define PLACEHOLDER_TS INT64_C(0x71727374757677f8)

/* The offset of VALUE's eight bytes. */
static size_t find_placeholder(const struct message_template *t, uint64_t value)
{
	char pattern[8];
	big_endian_store(pattern, value);
	const char *at = memmem(t->bytes, t->length, pattern, sizeof pattern);
	if (!at)
		fatalx(EXIT_INTERNAL, "message: the library changed a placeholder");
	return (size_t)(at - t->bytes);
}

static void put_properties(pn_data_t *properties, const struct message_options *options)
{
	if (!options->sequence && !options->timestamp)
		return;
	pn_data_put_map(properties);
	pn_data_enter(properties);
	if (options->sequence) {
		pn_data_put_string(properties, pn_bytes(2, "sn"));
		pn_data_put_ulong(properties, PLACEHOLDER_SN);
	}
	if (options->timestamp) {
		pn_data_put_string(properties, pn_bytes(2, "ts"));
		pn_data_put_long(properties, PLACEHOLDER_TS);
	}
	pn_data_exit(properties);
}

/* Encodes the message that all others are copies of. */
void message_template_create(struct message_template *t, const struct message_options *options)
{
	pn_message_t *message = pn_message();
	if (options->durable)
		pn_message_set_durable(message, true);
	if (options->has_ttl)
		pn_message_set_ttl(message, options->ttl_ms);
	if (options->has_priority)
		pn_message_set_priority(message, options->priority);
	put_properties(pn_message_properties(message), options);
	pn_message_set_inferred(message, true); /* a binary body becomes a data section */
	pn_data_put_binary(
		pn_message_body(message), pn_bytes(options->content_bytes, options->content));

	/* all sections before the body are far below this */
	t->length = options->content_bytes + 1024;
	t->bytes = malloc(t->length);
	if (!t->bytes)
		fatal(EXIT_INTERNAL, "message of %zu bytes", t->length);
	int error = pn_message_encode(message, t->bytes, &t->length);
	if (error)
		fatalx(EXIT_INTERNAL, "message: cannot encode: %s", pn_code(error));
	pn_message_free(message);
	t->sequence_at = options->sequence ? find_placeholder(t, PLACEHOLDER_SN) : 0;
	t->timestamp_at = options->timestamp ? find_placeholder(t, (uint64_t)PLACEHOLDER_TS) : 0;
}

/* Frees what create allocated. */
void message_template_destroy(struct message_template *t)
{
	free(t->bytes);
	t->bytes = NULL;
}
