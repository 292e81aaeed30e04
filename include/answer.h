/* answer: the messages that answer others, as precv --reply sends them. Layer 3.
 *
 * An answer has the message's id, whatever its type, as its correlation id, or the message's
 * correlation id if it has no id; its sn and ts; and its body, byte for byte. What is before the
 * body, the head, is made once for messages that look alike, and patched for each.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "stamp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer address is none. */
#define ANSWER_ADDRESS_MAX 1024

/* Of the answers to messages that look alike. It is empty when it is all zeroes. */
struct answer_form {
	uint64_t decodes; /* of their stamp_reader when it was made; 0: it was not */
	char address[ANSWER_ADDRESS_MAX + 1]; /* reply-to; empty if there is none that will do */
	char *head;
	size_t head_bytes, head_capacity;
	size_t id_at, sn_at, ts_at; /* offsets of what is each message's own; 0: there is none */
};

/* Whether F is for the message that R has read last. */
static inline bool answer_form_fits(const struct answer_form *f, const struct stamp_reader *r)
{
	return f->decodes == r->decodes;
}

/* Makes F for the message that R has read last, all of which is at BYTES. Ends the process if there
 * is no memory. */
void answer_form_make(struct answer_form *f, const struct stamp_reader *r, const char *bytes);

/* The head gets what is that message's own. */
void answer_form_fill(struct answer_form *f, const struct stamp_reader *r, const char *bytes);

/* Where that message's body ends, as far as it can be read, of its LENGTH bytes. It begins at
 * R->body_section_at; what is behind it, a footer, is about the message, not about the answer. */
size_t answer_body_end(const struct stamp_reader *r, const char *bytes, size_t length);

/* Frees what F has. */
void answer_form_free(struct answer_form *f);

#endif
