/* schedule: when messages are due in an open loop. Layer 1: arithmetic only, the time is an
 * argument.
 *
 * Batch K, from 0 on, is due at START + K x GAP, where GAP = batch size / rate: of the start and a
 * number, not of the batch before it, so that nothing adds up, neither lateness nor rounding. With
 * a seed gaps are exponential with that mean (a Poisson process), the first batch being due at the
 * start all the same. A schedule knows nothing of what has become of its messages: it is a place in
 * a row of times, and a copy of it is another such place.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* A message that is sent so much after it was due was late. */
#define SCHEDULE_LATE_NS INT64_C(1000000)

/* More of them could not be counted in the time that they take: of batches with even gaps, which
 * need not be looked at one by one, and of those without. */
#define SCHEDULE_RATE_MAX_PER_S         1e9
#define SCHEDULE_POISSON_RATE_MAX_PER_S 1e7

struct schedule_options {
	double rate_per_s;     /* messages, above 0; see SCHEDULE_RATE_MAX_PER_S */
	uint64_t batch;        /* messages that are due at a time, 1 or more */
	uint64_t poisson_seed; /* 0: gaps are even */
};

struct schedule {
	long double gap_ns; /* between batches, in the mean */
	uint64_t batch;
	uint64_t left;  /* messages of the present batch: those at `due_ns`, at least one */
	uint64_t index; /* of the present batch */
	int64_t start_ns, due_ns;
	bool poisson;
	uint64_t random;        /* state of the generator */
	long double elapsed_ns; /* poisson: from the start to the present batch */
};

/* The first batch is due at START. */
void schedule_start(struct schedule *s, const struct schedule_options *options, int64_t start_ns);

/* Goes to the next batch. */
void schedule_next_batch(struct schedule *s);

/* When the next message is due; INT64_MAX: in 292 years or later. */
static inline int64_t schedule_due_ns(const struct schedule *s)
{
	return s->due_ns;
}

/* Goes past one message. */
static inline void schedule_take(struct schedule *s)
{
	if (!--s->left)
		schedule_next_batch(s);
}

/* Goes past all messages that are due at NOW or before. Returns how many these were. */
uint64_t schedule_pass(struct schedule *s, int64_t now_ns);

/* When the time of the messages taken so far is over: each has its share of the gap to the next
 * batch. INT64_MAX: in 292 years or later. */
int64_t schedule_end_ns(const struct schedule *s);

/* The first time not before NOW that is a whole number of even gaps after START, or before it.
 * INT64_MAX: in 292 years or later. */
int64_t schedule_align_ns(const struct schedule_options *options, int64_t start_ns, int64_t now_ns);

#endif
