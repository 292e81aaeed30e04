/* backoff: pauses between attempts, which grow. Layer 1: arithmetic only.
 *
 * The n-th pause in a row is drawn evenly from 50 to 100 % of a step that begins at 50 ms and
 * doubles up to 5 s, so that many programs which have lost the same peer do not return together.
 */
#ifndef BACKOFF_H
#define BACKOFF_H

#include "mix.h"

#include <stdint.h>

#define BACKOFF_FIRST_NS   INT64_C(50000000)
#define BACKOFF_LONGEST_NS INT64_C(5000000000)

struct backoff {
	uint64_t random; /* state of the generator */
	int64_t step_ns; /* of the next pause */
};

/* After a success: the next pause is a short one. */
static inline void backoff_reset(struct backoff *b)
{
	b->step_ns = BACKOFF_FIRST_NS;
}

/* SEED should differ between processes. */
static inline void backoff_start(struct backoff *b, uint64_t seed)
{
	b->random = seed;
	backoff_reset(b);
}

/* The next pause. */
static inline int64_t backoff_next_ns(struct backoff *b)
{
	uint64_t random = mix_next(&b->random);
	int64_t half_ns = b->step_ns / 2;
	int64_t pause_ns = b->step_ns - half_ns + (int64_t)(random % (uint64_t)(half_ns + 1));
	b->step_ns = 2 * b->step_ns < BACKOFF_LONGEST_NS ? 2 * b->step_ns : BACKOFF_LONGEST_NS;
	return pause_ns;
}

#endif
