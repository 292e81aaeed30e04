/* answer_part: an answer that is handed to the library in parts. Layer 3, for answering.c.
 *
 * The library moves all it holds of a message whenever the peer's session window lets a part of it
 * through: one that is long compared to the window would take quadratic time. So of a long answer
 * it gets the next part when it has sent most of what was before. An answer's body is that of the
 * message that is answered, which must stay as long.
 */
#ifndef ANSWER_PART_H
#define ANSWER_PART_H

#include <proton/delivery.h>
#include <proton/link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* While so many bytes are in the library's queue no more are handed over, and no more than that at
 * a time. */
#define ANSWER_PART_BYTES (32 * 1024)

/* On one link there is one at a time. It begins as all zeroes. */
struct answer_part {
	const void *owner;       /* whoever has begun it, only compared; NULL: there is none */
	pn_delivery_t *delivery; /* NULL: the peer has settled it, and gets no more */
	size_t at, end;          /* offsets, in the message, of the body that is left */
	size_t before_bytes;     /* of those that have ended, handed over and not sent then */
};

/* Whether there is one, and whether it is OWNER's. */
static inline bool answer_part_is_used(const struct answer_part *p)
{
	return p->owner;
}

static inline bool answer_part_is_of(const struct answer_part *p, const void *owner)
{
	return p->owner == owner;
}

/* Begins the answer with the number TAG, whose HEAD is handed over at once; its body is what the
 * message has from BODY_AT to BODY_END. There must be none. */
void answer_part_begin(struct answer_part *p, pn_link_t *link, const void *owner, uint64_t tag,
	const char *head, size_t head_bytes, size_t body_at, size_t body_end);

/* Bytes of it that the library has and has not sent. */
size_t answer_part_queued_bytes(const struct answer_part *p);

/* The same of all answers of LINK, or more. */
size_t answer_part_link_bytes(const struct answer_part *p, pn_link_t *link);

/* Hands over the next part, of the message at BYTES. True if that was the last: then there is none
 * any more. It is settled as the link's sender settle mode says; if that is mixed, as the message
 * was. */
bool answer_part_send(struct answer_part *p, pn_link_t *link, const char *bytes, bool settled);

/* The peer has settled D, or given it an outcome: so do we, and if it is this one the rest of it is
 * for nobody; its owner learns that from answer_part_send(). */
void answer_part_settle(struct answer_part *p, pn_delivery_t *d);

/* Its owner will not go on with it: there is none. */
void answer_part_abort(struct answer_part *p);

/* The peer has left LINK. What was not sent would count in its session's queue as long as there is
 * one, as what was handed over settled does: that cannot be aborted. */
void answer_part_abort_queued(pn_link_t *link);

#endif
