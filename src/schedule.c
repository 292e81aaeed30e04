#include "schedule.h"

#include "mix.h"

#include <math.h>

#define SECOND_NS  1e9L
#define GAP_MAX_NS 0x1p63L /* 292 years */
#define ONE_NS     0x1p64L /* in a schedule's times */

static long double gap_ns_of(const struct schedule_options *o)
{
	return SECOND_NS * (long double)o->batch / (long double)o->rate_per_s;
}

/* As far as that goes: after more, nothing is due. */
static unsigned __int128 time_of(long double ns)
{
	return (unsigned __int128)((ns < GAP_MAX_NS ? ns : GAP_MAX_NS - 1) * ONE_NS);
}

/* From the start on. */
void schedule_start(struct schedule *s, const struct schedule_options *options, int64_t start_ns)
{
	*s = (struct schedule){.gap = time_of(gap_ns_of(options)),
		.batch = options->batch,
		.left = options->batch,
		.start_ns = start_ns,
		.due_ns = start_ns,
		.poisson = options->poisson_seed,
		.random = options->poisson_seed};
}

/* Exponential: of a number in (0, 1], so that the logarithm exists. */
unsigned __int128 schedule_random_gap(struct schedule *s)
{
	long double above_zero = (long double)((mix_next(&s->random) >> 11) + 1);
	long double gap_ns = (long double)s->gap / ONE_NS;
	return time_of(-gap_ns * logl(above_zero / 0x1p53L));
}

/* Goes to shortly before the batch that is due after NOW, if gaps are even: however many were
 * missed, that takes no time. */
static uint64_t leap(struct schedule *s, int64_t now_ns)
{
	if (s->poisson)
		return 0;
	unsigned __int128 ahead = (unsigned __int128)(now_ns - s->due_ns) << 64;
	uint64_t batches = (uint64_t)(ahead / s->gap);
	if (batches < 2)
		return 0;
	uint64_t passed = s->left + (batches - 2) * s->batch;
	schedule_go_on(s, s->gap * (batches - 1));
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
		s->left = 1;
		schedule_take(s);
	}
	return passed;
}

/* So that who comes late is still in step. */
int64_t schedule_align_ns(const struct schedule_options *options, int64_t start_ns, int64_t now_ns)
{
	long double gap_ns = gap_ns_of(options);
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
	next.left = 1;
	schedule_take(&next);
	if (next.due_ns == INT64_MAX)
		return INT64_MAX;
	long double share = (long double)taken / (long double)s->batch;
	return s->due_ns + (int64_t)(share * (long double)(next.due_ns - s->due_ns));
}
