#include "pacing.h"

/* The realtime clock may be set, or slewed by 0.05 %: what is off by then is below a microsecond.
 */
#define OFFSET_AGE_NS NS_PER_MS

/* Batches of a Poisson process that are due in SCHEDULE_LATE_NS are fewer. */
#define JUST_DUE_MAX 20000

/* Without --send-rate it is not used. */
void pacing_create(struct pacing *p, const struct options *o, struct stats *stats)
{
	*p = (struct pacing){.used = o->send_rate_per_s > 0,
		.skips = o->catch_up == CATCH_UP_NONE,
		.clock = o->clock,
		.options = {o->send_rate_per_s, o->batch, o->poisson_seed},
		.offset_at_ns = INT64_MIN,
		.stats = stats};
}

/* If the time has passed by then, it goes on at the next place in step with it. */
void pacing_begin(struct pacing *p, int64_t start_at_ns, int64_t ready_ns)
{
	if (!p->used || p->begun)
		return;
	p->begun = true;
	int64_t start_ns =
		start_at_ns ? schedule_align_ns(&p->options, start_at_ns, ready_ns) : ready_ns;
	schedule_start(&p->next, &p->options, start_ns);
	p->now = p->next;
}

/* Not for each message: two clocks are read. */
static void read_offset(struct pacing *p, int64_t now_ns)
{
	if (p->clock == CLOCK_KIND_MONOTONIC || now_ns < p->offset_at_ns + OFFSET_AGE_NS)
		return;
	p->offset_ns = clock_realtime_at_ns(now_ns) - now_ns;
	p->offset_at_ns = now_ns;
}

/* What is due long ago, unless it is only one gap. Of the last batch there may be fewer. */
static void skip(struct pacing *p, int64_t now_ns)
{
	int64_t late_ns = schedule_gap_ns(&p->next);
	if (late_ns < SCHEDULE_LATE_NS)
		late_ns = SCHEDULE_LATE_NS;
	uint64_t skipped = schedule_pass(&p->next, now_ns - late_ns - 1);
	if (skipped > p->backlog)
		skipped = p->backlog;
	p->stats->n.slots_skipped += skipped;
	p->backlog -= skipped;
}

/* The schedule's time is that since its start, as far as messages may be due. */
void pacing_turn(struct pacing *p, uint64_t left, int64_t now_ns)
{
	if (!p->begun || p->ended || now_ns < p->next.start_ns)
		return;
	struct counters *n = &p->stats->n;
	uint64_t due = schedule_pass(&p->now, now_ns);
	n->due += due;
	p->backlog += due;
	n->paced_ns = (uint64_t)(now_ns - p->next.start_ns);
	if (p->skips && p->backlog)
		skip(p, now_ns);
	uint64_t beyond = p->backlog > left ? p->backlog - left : 0;
	if (beyond > due) /* what has been counted before stays so */
		beyond = due;
	n->due -= beyond;
	p->backlog -= beyond;
	read_offset(p, now_ns);
}

/* Those of the backlog that are not late yet. */
static uint64_t just_due(const struct pacing *p, int64_t now_ns)
{
	struct schedule s = p->next;
	uint64_t batches = p->backlog / p->options.batch;
	if (!p->backlog || (s.poisson && batches > JUST_DUE_MAX))
		return 0;
	uint64_t overdue = schedule_pass(&s, now_ns - SCHEDULE_LATE_NS - 1);
	return overdue < p->backlog ? p->backlog - overdue : 0;
}

/* `just_due` is a level, not a count: a report has that of its own time. */
void pacing_cut(struct pacing *p, uint64_t left, int64_t now_ns)
{
	pacing_turn(p, left, now_ns);
	p->stats->just_due = p->begun ? just_due(p, now_ns) : 0;
}

/* The last message has its gap, as all others have: so a rate that was kept is the rate. */
void pacing_end(struct pacing *p, int64_t now_ns)
{
	if (!p->begun || p->ended)
		return;
	pacing_turn(p, 0, now_ns);
	p->ended = true;
	int64_t end_ns = schedule_end_ns(&p->next);
	if (end_ns <= now_ns)
		p->stats->overrun_ns = (uint64_t)(now_ns - end_ns);
	else if (end_ns < INT64_MAX)
		p->stats->n.paced_ns = (uint64_t)(end_ns - p->next.start_ns);
}
