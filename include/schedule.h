/* schedule: when messages are due in an open loop. Layer 1: arithmetic only, the time is an
 * argument.
 *
 * Batch K, from 0 on, is due at START + K x GAP, where GAP = batch size / rate: that of the
 * schedule, not of what has become of the batch before it, so that lateness does not add up. With
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

/* Times since the start have 64 bits of a nanosecond's fraction: a billion gaps that are added up
 * are off by less than a nanosecond. */
struct schedule {
	unsigned __int128 gap, elapsed; /* between batches, in the mean; to the present batch */
	uint64_t batch;
	uint64_t left; /* messages of the present batch: those at `due_ns`, at least one */
	int64_t start_ns, due_ns;
	uint64_t random; /* poisson: state of the generator */
	bool poisson;
};

/* The first batch is due at START. */
void schedule_start(struct schedule *s, const struct schedule_options *options, int64_t start_ns);

/* When the next message is due; INT64_MAX: in 292 years or later. */
static inline int64_t schedule_due_ns(const struct schedule *s)
{
	return s->due_ns;
}

/* Part of schedule_take(): the gap behind the present batch. */
unsigned __int128 schedule_random_gap(struct schedule *s);

/* Part of schedule_take(): to the batch after the present one. */
static inline void schedule_go_on(struct schedule *s, unsigned __int128 gap)
{
	s->left = s->batch;
	s->elapsed += gap;
	uint64_t elapsed_ns = (uint64_t)(s->elapsed >> 64);
	uint64_t room_ns = (uint64_t)(INT64_MAX - s->start_ns);
	s->due_ns = elapsed_ns < room_ns && s->due_ns < INT64_MAX
		? s->start_ns + (int64_t)elapsed_ns
		: INT64_MAX;
}

/* Goes past one message. */
static inline void schedule_take(struct schedule *s)
{
	if (!--s->left)
		schedule_go_on(
			s, __builtin_expect(s->poisson, 0) ? schedule_random_gap(s) : s->gap);
}

/* Between batches, in the mean; INT64_MAX: as long or longer. */
static inline int64_t schedule_gap_ns(const struct schedule *s)
{
	return (int64_t)(s->gap >> 64);
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
