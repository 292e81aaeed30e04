/* batches: which of a link's batches are on their way, and how much of each is settled. Layer 1.
 *
 * Numbers of a link follow each other without gaps, and so do its batches: number SN is of batch
 * (SN - first) / size. Batches are kept from their first message until all of them are settled.
 */
#ifndef BATCHES_H
#define BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch {
	int64_t began_ns;     /* its first message was sent, or due */
	uint64_t began_ticks; /* the same, on another clock */
	uint64_t settled;     /* messages */
};

struct batches {
	uint64_t size;        /* messages of each, 1 or more */
	uint64_t first;       /* number of the first message of the first batch */
	uint64_t oldest, end; /* those kept are from `oldest` to before `end` */
	struct batch *ring;   /* by number of the batch */
	size_t capacity;      /* a power of two */
};

/* No batch has begun; the first begins with the number FIRST. batches_free() frees what it has. */
void batches_create(struct batches *b, uint64_t size, uint64_t first);
void batches_free(struct batches *b);

/* Whether the message with the number SN is the first of a batch that has not begun. */
static inline bool batches_is_new(const struct batches *b, uint64_t sn)
{
	return (sn - b->first) / b->size == b->end;
}

/* That batch begins. Ends the process if there is no memory. */
void batches_begin(struct batches *b, int64_t began_ns, uint64_t began_ticks);

/* Bits: of a batch of one message, the first to be settled is the last as well. */
enum { BATCHES_FIRST = 1, BATCHES_LAST = 2 };

/* The message with the number SN is settled. Returns whether it is the first or the last of its
 * batch to be, as bits, and in BATCH what is known of the batch. Of a number that is of no batch
 * under way: 0, and BATCH is left as it is. */
unsigned batches_settle(struct batches *b, uint64_t sn, struct batch *batch);

#endif
