/* clock: the only place that asks the kernel for the time. Layer 0.
 *
 * Durations are always taken on the monotonic clock. The realtime clock is for time stamps that
 * travel in messages, and for the calendar.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

/* Which clock stamps messages (--clock). */
enum clock_kind { CLOCK_KIND_REALTIME, CLOCK_KIND_MONOTONIC };

int64_t clock_monotonic_ns(void);             /* since an arbitrary point, never steps back */
int64_t clock_realtime_ns(void);              /* since 1970-01-01 00:00 UTC */
int64_t clock_stamp_ns(enum clock_kind kind); /* one of the two above */

/* What the realtime clock showed at a time of the monotonic one, if it has not been set since. Both
 * clocks are read together, and the error is at most half of the time which that took. */
int64_t clock_realtime_at_ns(int64_t monotonic_ns);

/* Whether the processor has a time stamp counter that ticks evenly, whatever its speed and sleep.
 */
bool clock_has_ticks(void);

/* That counter, in ticks, of which nothing says how long they are. Only if there is one. */
uint64_t clock_ticks(void);

/* A clock for a run of messages handled one after the other: it is read for the first and then for
 * every CLOCK_RUN-th, so a time is at most as old as it takes to handle CLOCK_RUN messages. */
#define CLOCK_RUN 16
struct clock_run {
	enum clock_kind kind;
	unsigned uses;
	int64_t now_ns;
};

static inline int64_t clock_run_ns(struct clock_run *c)
{
	if (c->uses++ % CLOCK_RUN == 0)
		c->now_ns = clock_stamp_ns(c->kind);
	return c->now_ns;
}

/* Writes NS since the epoch as 2026-11-30T19:37:08.123456789Z; 31 bytes with the final 0. */
#define CLOCK_UTC_SIZE 31
void clock_format_utc(int64_t ns, char text[CLOCK_UTC_SIZE]);

#endif
