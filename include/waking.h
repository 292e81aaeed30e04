/* waking: how long to sleep so as to be awake in time. Layer 1: arithmetic only.
 *
 * A sleep ends late: by some microseconds, or on a virtual machine, whose processor has to be woken
 * itself, by some tens. That is much the same each time, so it is learnt, and a sleep is made
 * shorter by so much. What is left when it ends early is short, and is waited for without sleeping.
 */
#ifndef WAKING_H
#define WAKING_H

#include <stdint.h>

/* A sleep that ends later than this was kept waiting by other work, not by the waking. */
#define WAKING_LATENESS_MAX_NS INT64_C(500000)
/* So much may be left when a sleep ends early, to be spent in looking. */
#define WAKING_SPIN_MAX_NS INT64_C(10000)
/* Never less, so that a wait gives the processor away however short it is. */
#define WAKING_SLEEP_MIN_NS INT64_C(1000)
/* What one sleep can change of what was learnt, so that an outlier is one of many. */
#define WAKING_STEP_NS INT64_C(1000)

struct waking {
	int64_t lateness_ns; /* of sleeps: about the median */
};

/* How long to sleep so as to be awake when LEFT has passed; never longer than LEFT. */
static inline int64_t waking_sleep_ns(const struct waking *w, int64_t left_ns)
{
	int64_t sleep_ns = left_ns - w->lateness_ns;
	if (sleep_ns < WAKING_SLEEP_MIN_NS)
		sleep_ns = WAKING_SLEEP_MIN_NS;
	return sleep_ns < left_ns ? sleep_ns : left_ns;
}

/* A sleep that went on to its end has taken LATENESS longer than was asked for. The first is taken
 * as it is; after that, one step up or down for each sleep finds the median. */
static inline void waking_learn(struct waking *w, int64_t lateness_ns)
{
	if (lateness_ns > WAKING_LATENESS_MAX_NS)
		lateness_ns = WAKING_LATENESS_MAX_NS;
	if (!w->lateness_ns)
		w->lateness_ns = lateness_ns;
	else if (lateness_ns > w->lateness_ns)
		w->lateness_ns += WAKING_STEP_NS;
	else if (w->lateness_ns > WAKING_STEP_NS)
		w->lateness_ns -= WAKING_STEP_NS;
}

#endif
