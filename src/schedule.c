#include "schedule.h"

#include "mix.h"

#include <math.h>

#define NS_PER_S 1e9L

static long double gap_of(const struct schedule_options *o)
{
	return NS_PER_S * (long double)o->batch / (long double)o->rate_per_s;
}

/* START + ELAPSED, as far as that goes. A long double has the 64 bits that this takes. */
static int64_t at_ns(const struct schedule *s, long double elapsed_ns)
{
	long double room_ns = (long double)(INT64_MAX - (s->start_ns > 0 ? s->start_ns : 0));
	return elapsed_ns < room_ns ? s->start_ns + (int64_t)elapsed_ns : INT64_MAX;
}

/* From the start on. */
void schedule_start(struct schedule *s, const struct schedule_options *options, int64_t start_ns)
{
	*s = (struct schedule){.gap_ns = gap_of(options),
		.batch = options->batch,
		.left = options->batch,
		.start_ns = start_ns,
		.due_ns = start_ns,
		.poisson = options->poisson_seed,
		.random = options->poisson_seed};
}

/* Exponential with mean 1: of a number in (0, 1], so that the logarithm exists. */
static long double random_gap(struct schedule *s)
{
	long double above_zero = (long double)((mix_next(&s->random) >> 11) + 1);
	return -logl(above_zero / 0x1p53L);
}

/* How many batches there have been is no more in its gap than in the others. */
void schedule_next_batch(struct schedule *s)
{
	s->index++;
	s->left = s->batch;
	if (s->poisson)
		s->elapsed_ns += s->gap_ns * random_gap(s);
	else
		s->elapsed_ns = s->gap_ns * (long double)s->index;
	s->due_ns = at_ns(s, s->elapsed_ns);
}

/* Goes to shortly before the batch that is due after NOW, if gaps are even: however many were
 * missed, that takes no time. */
static uint64_t leap(struct schedule *s, int64_t now_ns)
{
	uint64_t index = (uint64_t)((long double)(now_ns - s->start_ns) / s->gap_ns);
	if (s->poisson || index <= s->index + 1)
		return 0;
	uint64_t passed = s->left + (index - 2 - s->index) * s->batch;
	s->index = index - 2;
	schedule_next_batch(s);
	return passed;
}

/* Those left of the present batch, and whole batches. */
uint64_t schedule_pass(struct schedule *s, int64_t now_ns)
{
	if (s->due_ns > now_ns)
		return 0;
	uint64_t passed = leap(s, now_ns);
	while (s->due_ns <= now_ns) {
		passed += s->left;
		schedule_next_batch(s);
	}
	return passed;
}

/* So that who comes late is still in step. */
int64_t schedule_align_ns(const struct schedule_options *options, int64_t start_ns, int64_t now_ns)
{
	long double gap_ns = gap_of(options);
	if (start_ns >= now_ns)
		return start_ns;
	long double gaps = ceill((long double)(now_ns - start_ns) / gap_ns);
	long double aligned_ns = (long double)start_ns + gaps * gap_ns;
	return aligned_ns < (long double)INT64_MAX ? (int64_t)aligned_ns : INT64_MAX;
}

/* What is taken of a batch has its share of the gap behind it. */
int64_t schedule_end_ns(const struct schedule *s)
{
	struct schedule next = *s;
	uint64_t taken = s->batch - s->left;
	if (!taken)
		return s->due_ns;
	schedule_next_batch(&next);
	long double share = (long double)taken / (long double)s->batch;
	long double gap_ns = (long double)next.due_ns - (long double)s->due_ns;
	return at_ns(s, (long double)(s->due_ns - s->start_ns) + share * gap_ns);
}
