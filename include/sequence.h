/* sequence: what became of numbered messages of one sender. Layer 1: arithmetic only.
 *
 * The sender numbers its messages from a first number on, one by one. The receiver remembers the
 * numbers that were passed over, as ranges, so that a late message is told from a second copy.
 *
 *   lost       = skipped - reordered: numbers passed over that have not come since
 *   reordered  numbers that came after a higher one
 *   duplicated numbers that had come before, or are below the first
 *
 * At most SEQUENCE_RANGES ranges are remembered; when one more is needed the oldest is forgotten:
 * it stays lost, and if it comes after all it is called a duplicate.
 */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include <stdint.h>

#define SEQUENCE_RANGES 1024

struct sequence_range {
	uint64_t first, last; /* both missing, and all between */
};

struct sequence {
	uint64_t next;                  /* the lowest number never seen or passed over */
	uint64_t skipped;               /* numbers passed over */
	uint64_t reordered;             /* of these, how many came later */
	uint64_t duplicated;            /* numbers seen again */
	struct sequence_range *missing; /* ascending; NULL until something is missing */
	uint32_t ranges;                /* how many are in use */
};

enum sequence_verdict {
	SEQUENCE_IN_ORDER,
	SEQUENCE_GAP,       /* higher than expected: some are missing now */
	SEQUENCE_REORDERED, /* one that was missing */
	SEQUENCE_DUPLICATE,
};

/* S expects FIRST. sequence_free() gives its memory back. */
void sequence_start(struct sequence *s, uint64_t first);
void sequence_free(struct sequence *s);

/* The case that is not in order. */
enum sequence_verdict sequence_see_other(struct sequence *s, uint64_t number);

/* A message with this number has come. */
static inline enum sequence_verdict sequence_see(struct sequence *s, uint64_t number)
{
	if (__builtin_expect(number != s->next, 0))
		return sequence_see_other(s, number);
	s->next++;
	return SEQUENCE_IN_ORDER;
}

#endif
