/* waking: how long to sleep so as to be awake in time. Layer 1: arithmetic only.
 *
 * A sleep ends late: by some microseconds, or on a virtual machine, whose processor has to be woken
 * itself, by some tens. That is much the same each time, so it is learnt, and a sleep is made
 * shorter by so much. What is left when it ends early is short, and is waited for without sleeping.
 */
#ifndef WAKING_H
#define WAKING_H

#include <stdint.h>

#define WAKING_LATENESS_MAX_NS                                                                     \
	INT64_C(100000)                    /* more is not the waking's, but some other work's      \
					    */
#define WAKING_SPIN_MAX_NS  INT64_C(10000) /* what may be left to be waited for so */
#define WAKING_SLEEP_MIN_NS INT64_C(1000)  /* so that a wait is a sleep, however short */
#define WAKING_STEP_NS      INT64_C(1000)  /* one that is very late counts for no more */

struct waking {
	int64_t lateness_ns; /* of sleeps: about the median */
};

/* How long to sleep if LEFT is to pass. */
static inline int64_t waking_sleep_ns(const struct waking *w, int64_t left_ns)
{
	int64_t sleep_ns = left_ns - w->lateness_ns;
	if (sleep_ns < WAKING_SLEEP_MIN_NS)
		sleep_ns = WAKING_SLEEP_MIN_NS;
	return sleep_ns < left_ns ? sleep_ns : left_ns;
}

/* A sleep that nothing has ended before has taken LATENESS longer than was asked for. */
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
