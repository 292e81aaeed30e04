/* pacer: when the next message is due. Layer 1: arithmetic only, the time is an argument.
 *
 * Due times follow an absolute schedule, one every 1/rate seconds, so that lateness of one does
 * not shift the next. A consumer may be late by PACER_SLACK_NS and still catch up; what it missed
 * beyond that is given up, so that a long silence is not followed by a burst.
 */
#ifndef PACER_H
#define PACER_H

#include <stdbool.h>
#include <stdint.h>

#define PACER_SLACK_NS 1000000

struct pacer {
	double period_ns;  /* 0: no limit */
	uint64_t taken;    /* messages, since the origin */
	int64_t origin_ns; /* when the first of them was due */
	int64_t work_ns;   /* time that each message takes, in which the next one is not due */
	int64_t free_ns;   /* when the work at hand ends */
};

/* RATE_PER_S 0 means no limit. */
static inline void pacer_start(struct pacer *p, double rate_per_s, int64_t work_ns, int64_t now_ns)
{
	*p = (struct pacer){.period_ns = rate_per_s > 0 ? 1e9 / rate_per_s : 0,
		.origin_ns = now_ns,
		.work_ns = work_ns};
}

/* Whether there is anything to wait for at all. */
static inline bool pacer_limits(const struct pacer *p)
{
	return p->period_ns > 0 || p->work_ns > 0;
}

/* When the next message may be taken. */
static inline int64_t pacer_due_ns(const struct pacer *p)
{
	int64_t due =
		p->period_ns > 0 ? p->origin_ns + (int64_t)((double)p->taken * p->period_ns) : 0;
	return due > p->free_ns ? due : p->free_ns;
}

/* One message is taken at NOW, not before it was due. If it was WAITING for that, the work on it
 * began when it was due, and what NOW is later is our own lateness. */
static inline void pacer_take(struct pacer *p, int64_t now_ns, bool waiting)
{
	int64_t began_ns = now_ns;
	if (waiting && pacer_due_ns(p) > now_ns - PACER_SLACK_NS)
		began_ns = pacer_due_ns(p);
	p->free_ns = p->work_ns ? began_ns + p->work_ns : 0;
	int64_t late_ns = now_ns - p->origin_ns - (int64_t)((double)p->taken * p->period_ns);
	if (late_ns > PACER_SLACK_NS)
		p->origin_ns += late_ns - PACER_SLACK_NS;
	p->taken++;
}

#endif
