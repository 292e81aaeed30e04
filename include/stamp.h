/* stamp: the two values sn and ts of a message that has arrived. Layer 3.
 *
 * The reader remembers where the values stood in the last message and what surrounded them; while
 * messages look alike, but for their ids, it reads two words and compares, else it decodes anew. A
 * broker may have rewritten the message: any integer type will do, a floating-point number without
 * a fraction, and a string of digits.
 */
#ifndef STAMP_H
#define STAMP_H

#include "big_endian.h"

#include <proton/codec.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Messages that have the same beginning, of so many bytes at most, are read without decoding. */
#define STAMP_PREFIX_MAX 4096

/* What the receiver learns from one message. */
struct stamp {
	uint64_t sn;
	int64_t ts;
	uint64_t content_bytes; /* of the body; of its encoding where it is not one data
				   section; 0 if it begins beyond the prefix */
	bool has_sn, has_ts;
	bool redelivered; /* the header's delivery-count, or its first-acquirer, says so */
};

/* How the last message looked. */
struct stamp_reader {
	struct stamp last;           /* all but sn and ts holds for a message that looks the same */
	size_t looked_at;            /* bytes of the prefix that must be the same; 0: decode */
	size_t body_at;              /* where the content starts */
	size_t length_bytes;         /* of the length in front of it; 0: it has none */
	size_t sn_at, ts_at;         /* of the values' eight bytes; 0 if absent */
	size_t hole[2];              /* the same, ascending; looked_at in place of an absent one */
	size_t id_at, id_end;        /* of the bytes of the message id, before the holes; both 0:
					there is none, or it may be of another length next time */
	size_t body_section_at;      /* where the body's first section starts, or would */
	uint64_t decodes;            /* messages that did not look like the one before them */
	pn_data_t *data;             /* scratch of the decoder */
	char seen[STAMP_PREFIX_MAX]; /* the prefix */
};

/* R has seen no message. stamp_reader_destroy() frees what it has allocated. */
void stamp_reader_create(struct stamp_reader *r);
void stamp_reader_destroy(struct stamp_reader *r);

/* Reads the stamp of a message of LENGTH bytes of which the first PREFIX are at BYTES. */
void stamp_decode(struct stamp_reader *r, const char *bytes, size_t prefix, size_t length);

/* Where the body begins, as far as the first PREFIX bytes of a message tell: if that is beyond
 * them, more of the message is needed to read its stamp. */
size_t stamp_head_bytes(const char *bytes, size_t prefix);

/* Whether the message looks like the last one but for the values and its id. */
static inline bool stamp_alike(
	const struct stamp_reader *r, const char *bytes, size_t prefix, size_t length)
{
	size_t after0 = r->hole[0] + 8, after1 = r->hole[1] + 8;
	return r->looked_at && prefix >= r->looked_at && length >= r->body_at
		&& (!r->id_end || !memcmp(bytes, r->seen, r->id_at))
		&& !memcmp(bytes + r->id_end, r->seen + r->id_end, r->hole[0] - r->id_end)
		&& (after0 >= r->hole[1]
			|| !memcmp(bytes + after0, r->seen + after0, r->hole[1] - after0))
		&& (after1 >= r->looked_at
			|| !memcmp(bytes + after1, r->seen + after1, r->looked_at - after1));
}

/* Reads a stamp, the fast way if it can. The result is valid until the next call. */
static inline const struct stamp *stamp_read(
	struct stamp_reader *r, const char *bytes, size_t prefix, size_t length)
{
	if (__builtin_expect(stamp_alike(r, bytes, prefix, length), 1)) {
		if (r->sn_at)
			r->last.sn = big_endian_load(bytes + r->sn_at);
		if (r->ts_at)
			r->last.ts = (int64_t)big_endian_load(bytes + r->ts_at);
		r->last.content_bytes = length - r->body_at;
	} else {
		stamp_decode(r, bytes, prefix, length);
	}
	return &r->last;
}

/* The body of the message that was read last, all of which is at BYTES, if it is one section of
 * plain bytes and the last one: *BODY_LENGTH of them. Else NULL: it is to be looked for. */
static inline const char *stamp_body(
	const struct stamp_reader *r, const char *bytes, size_t length, size_t *body_length)
{
	uint32_t long_length;
	if (!r->length_bytes || length < r->body_at)
		return NULL;
	*body_length = length - r->body_at;
	if (r->length_bytes == 1)
		return *body_length == (unsigned char)bytes[r->body_at - 1] ? bytes + r->body_at
									    : NULL;
	memcpy(&long_length, bytes + r->body_at - 4, sizeof long_length);
	return *body_length == be32toh(long_length) ? bytes + r->body_at : NULL;
}

#endif
