#define _GNU_SOURCE
#include "clock.h"

#include <stdio.h>
#include <time.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

#define PAIR_TRIES 5 /* of reading both clocks together */

static int64_t read_ns(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Nanoseconds on the monotonic clock. */
int64_t clock_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

/* Nanoseconds since the epoch. */
int64_t clock_realtime_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

/* The clock that stamps messages. */
int64_t clock_stamp_ns(enum clock_kind kind)
{
	return read_ns(kind == CLOCK_KIND_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC);
}

/* The difference of the clocks is of the try that was interrupted least. */
int64_t clock_realtime_at_ns(int64_t monotonic_ns)
{
	int64_t least_ns = INT64_MAX, difference_ns = 0;
	for (int i = 0; i < PAIR_TRIES; i++) {
		int64_t before_ns = clock_monotonic_ns();
		int64_t realtime_ns = clock_realtime_ns();
		int64_t took_ns = clock_monotonic_ns() - before_ns;
		if (took_ns < least_ns) {
			least_ns = took_ns;
			difference_ns = realtime_ns - (before_ns + took_ns / 2);
		}
	}
	return monotonic_ns + difference_ns;
}

#ifdef __x86_64__
/* Advanced power management, EDX bit 8: invariant TSC (AMD64 Programmer's Manual, volume 3). */
bool clock_has_ticks(void)
{
	unsigned eax, ebx, ecx, edx;
	return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && edx & 1 << 8;
}

/* Not before what stands before it has been done. RDTSCP, which would see to that by itself, is not
 * everywhere: not in some virtual machines, nor in valgrind. */
uint64_t clock_ticks(void)
{
	_mm_lfence();
	return __rdtsc();
}
#else
/* Not known of other processors. */
bool clock_has_ticks(void)
{
	return false;
}

/* Not to be called. */
uint64_t clock_ticks(void)
{
	return 0;
}
#endif

/* RFC 3339 with nanoseconds. */
void clock_format_utc(int64_t ns, char text[CLOCK_UTC_SIZE])
{
	time_t seconds = ns / NS_PER_S;
	struct tm calendar;
	char day[20];
	gmtime_r(&seconds, &calendar);
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &calendar);
	snprintf(text, CLOCK_UTC_SIZE, "%s.%09uZ", day, (unsigned)(ns % NS_PER_S));
}
