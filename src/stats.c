#define _GNU_SOURCE
#include "stats.h"

#include "clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static_assert(sizeof(struct counters) % sizeof(uint64_t) == 0, "counters are uint64_t only");
#define COUNTERS (sizeof(struct counters) / sizeof(uint64_t))

/* The name that reports use. */
const char *time_cause_name(enum time_cause cause)
{
	static const char *const NAMES[TIME_CAUSES] = {
		"busy", "credit", "session", "socket", "settlement", "pacing", "idle"};
	return NAMES[cause];
}

/* Everything to nothing. */
void stats_reset(struct stats *s, unsigned timings)
{
	memset(&s->n, 0, sizeof s->n);
	s->timings_used = timings;
	for (enum timing t = 0; t < TIMINGS; t++)
		if (timings & TIMING_BIT(t))
			histogram_reset(&s->timings[t]);
	s->unsettled = 0;
	s->just_due = 0;
	s->overrun_ns = 0;
	s->credit_lowest = UINT32_MAX;
}

/* What is not used is not touched, and takes no memory. */
void stats_copy(struct stats *to, const struct stats *from)
{
	to->n = from->n;
	to->timings_used = from->timings_used;
	for (enum timing t = 0; t < TIMINGS; t++)
		if (from->timings_used & TIMING_BIT(t))
			to->timings[t] = from->timings[t];
	to->credit_lowest = from->credit_lowest;
	to->unsettled = from->unsettled;
	to->just_due = from->just_due;
	to->overrun_ns = from->overrun_ns;
}

/* The extremes of a period are its own. */
void stats_cut(struct stats *s)
{
	for (enum timing t = 0; t < TIMINGS; t++)
		if (s->timings_used & TIMING_BIT(t))
			histogram_cut(&s->timings[t]);
	s->credit_lowest = UINT32_MAX;
}

/* Counter by counter. */
void counters_add(struct counters *sum, const struct counters *part)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)part;
	for (size_t i = 0; i < COUNTERS; i++)
		to[i] += from[i];
}

/* Sum of two periods. */
void stats_add(struct stats *sum, const struct stats *part)
{
	counters_add(&sum->n, &part->n);
	for (enum timing t = 0; t < TIMINGS; t++)
		if (part->timings_used & TIMING_BIT(t))
			histogram_add(&sum->timings[t], &part->timings[t]);
	if (part->credit_lowest < sum->credit_lowest)
		sum->credit_lowest = part->credit_lowest;
	sum->unsettled = part->unsettled;
	sum->just_due = part->just_due;
	sum->overrun_ns = part->overrun_ns;
}

/* What happened between two cuts. */
void stats_subtract(struct stats *period, const struct stats *later, const struct stats *earlier)
{
	uint64_t *to = (uint64_t *)&period->n;
	const uint64_t *a = (const uint64_t *)&later->n;
	const uint64_t *b = (const uint64_t *)&earlier->n;
	for (size_t i = 0; i < COUNTERS; i++)
		to[i] = a[i] - b[i];
	period->timings_used = later->timings_used;
	for (enum timing t = 0; t < TIMINGS; t++)
		if (later->timings_used & TIMING_BIT(t))
			histogram_subtract(
				&period->timings[t], &later->timings[t], &earlier->timings[t]);
	period->credit_lowest = later->credit_lowest;
	period->unsettled = later->unsettled;
	period->just_due = later->just_due;
	period->overrun_ns = later->overrun_ns;
}

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_usec * NS_PER_US;
}

/* One system call. */
void stats_sample_cpu(struct counters *n)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	n->cpu_user_ns = timeval_ns(usage.ru_utime);
	n->cpu_system_ns = timeval_ns(usage.ru_stime);
	n->switches_voluntary = (uint64_t)usage.ru_nvcsw;
	n->switches_involuntary = (uint64_t)usage.ru_nivcsw;
}

/* From /proc: rusage's peak would include whoever forked us. */
struct memory memory_sample(void)
{
	struct memory memory = {0};
	FILE *status = fopen("/proc/self/status", "re");
	if (!status)
		return memory;
	char line[128];
	while (fgets(line, sizeof line, status)) {
		unsigned long kib;
		if (sscanf(line, "VmRSS: %lu", &kib) == 1)
			memory.rss_bytes = kib * 1024;
		else if (sscanf(line, "VmHWM: %lu", &kib) == 1)
			memory.rss_peak_bytes = kib * 1024;
	}
	fclose(status);
	/* the kernel keeps both numbers roughly, and its peak may lie below what it has said */
	static uint64_t peak_bytes;
	if (memory.rss_bytes > peak_bytes)
		peak_bytes = memory.rss_bytes;
	if (memory.rss_peak_bytes > peak_bytes)
		peak_bytes = memory.rss_peak_bytes;
	memory.rss_peak_bytes = peak_bytes;
	return memory;
}
