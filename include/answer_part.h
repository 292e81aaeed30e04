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

/* While so many bytes are in the library's queue no more are handed over, and no more than that at
 * a time. */
#define ANSWER_PART_BYTES (32 * 1024)

/* On one link there is one at a time. It is all zeroes when there is none. */
struct answer_part {
	const void *owner;       /* whoever has begun it; NULL: there is none */
	pn_delivery_t *delivery; /* NULL: the peer has settled it, and gets no more */
	size_t at, end;          /* offsets, in the message, of the body that is left */
};

/* Begins the answer with the number TAG, whose HEAD is handed over at once. */
void answer_part_begin(struct answer_part *p, pn_link_t *link, const void *owner, uint64_t tag,
	const char *head, size_t head_bytes);

/* Bytes of it that the library has and has not sent. */
size_t answer_part_queued_bytes(const struct answer_part *p);

/* Hands over the next part, of the message at BYTES. True if that was the last, which ends it; it
 * is settled if the message was SETTLED and the link does not want it otherwise. */
bool answer_part_send(struct answer_part *p, pn_link_t *link, const char *bytes, bool settled);

/* The peer has settled D, or given it an outcome: so do we, and if it is this one the rest of it is
 * for nobody. */
void answer_part_settle(struct answer_part *p, pn_delivery_t *d);

/* Its owner will not go on with it. */
void answer_part_abort(struct answer_part *p);

/* The peer has left LINK. What was not sent would count in its session's queue as long as there is
 * one. */
void answer_part_abort_queued(pn_link_t *link);

#endif
