/* The percentile distribution that HdrHistogram writes (.hgrm) and its plotters read. Values are
 * in microseconds, with three decimals: exact nanoseconds.
 *
 * HdrHistogram lists the values at certain percentiles, from which no bucket can be told. So below
 * that there is a comment for each bucket that is not empty, and what else it takes to merge files
 * exactly: scripts/ppair/hgrm.py reads that, and writes the same bytes. One comment names what was
 * timed, in JSON's words but without the unit, so that latencies are not merged with round trips.
 *
 * Plotters look at lines of four numbers, some only if there is a blank before the first, and pass
 * over those that begin with #; one stops at the first of these, so they all come last. One takes
 * the percentiles of the first of several files for those of all, line by line: so there must be
 * no percentile that HdrHistogram would not list.
 */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Steps between two halvings of the distance to 100 %, as HdrHistogram's default has them. */
#define STEPS 5

/* One of these percentiles: after so many halvings, and steps of the next. */
struct level {
	unsigned halvings, step;
};

/* Of an __int128, with a sign, a point and the end. */
#define US_SIZE 48

/* Nanoseconds as microseconds; the text is somewhere in BUFFER. */
static const char *in_us(__int128 ns, char buffer[US_SIZE])
{
	unsigned __int128 left = ns < 0 ? -(unsigned __int128)ns : (unsigned __int128)ns;
	char *start = buffer + US_SIZE - 1;
	*start = '\0';
	for (int digits = 0; left || digits <= 3; digits++, left /= 10) {
		if (digits == 3)
			*--start = '.';
		*--start = (char)('0' + left % 10);
	}
	if (ns < 0)
		*--start = '-';
	return start;
}

/* The share of all values that is above a level. */
static double level_distance(const struct level *l)
{
	return ldexp((2 * STEPS - l->step) / (2.0 * STEPS), -(int)l->halvings);
}

/* How many of COUNT values are at or below it at least. */
static uint64_t level_rank(const struct level *l, uint64_t count)
{
	unsigned __int128 above = (unsigned __int128)count * (2 * STEPS - l->step);
	return count - (uint64_t)(above / ((unsigned __int128)(2 * STEPS) << l->halvings));
}

static void next_level(struct level *l)
{
	if (++l->step < STEPS)
		return;
	l->step = 0;
	l->halvings++;
}

/* The minimum, then all levels up to the first that has every value at or below it. */
static void print_levels(FILE *out, const struct histogram *h, const struct histogram_summary *s)
{
	char text[US_SIZE];
	uint64_t seen = 0, rank = 0;
	unsigned next = 0; /* bucket */
	for (struct level l = {0}; rank < s->count; next_level(&l)) {
		rank = level_rank(&l, s->count);
		while (!seen || seen < rank)
			seen += h->buckets[next++];
		int64_t value = histogram_highest(next - 1);
		if (value > s->max || rank == s->count)
			value = s->max;
		double distance = level_distance(&l);
		fprintf(out, "%16s %2.12f %10" PRIu64 " %14.2f\n",
			in_us(rank ? value : s->min, text), 1 - distance, seen, 1 / distance);
	}
	if (s->count) /* this has no finite inverse */
		fprintf(out, "%16s %2.12f %10" PRIu64 "\n", in_us(s->max, text), 1.0, s->count);
}

/* Each with its lowest value. */
static void print_buckets(FILE *out, const struct histogram *h)
{
	char text[US_SIZE];
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (h->buckets[i])
			fprintf(out, "#[Bucket  = %12s, Count          = %12" PRIu64 "]\n",
				in_us(histogram_lowest(i), text), h->buckets[i]);
}

/* The one timing that such a file has. */
static enum timing main_timing(const struct report_run *run)
{
	return run->asks ? TIMING_ROUND_TRIP : TIMING_LATENCY;
}

static void hdr_summary(FILE *out, const struct report_run *run, const struct report_summary *s)
{
	const struct histogram *h = &s->total.stats.timings[main_timing(run)];
	struct histogram_summary summary;
	histogram_summarize(h, &summary);
	fprintf(out, "%16s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	print_levels(out, h, &summary);
	char text[US_SIZE];
	fprintf(out, "#[Exact   = ppair-hgrm/1, every bucket follows]\n");
	/* without the unit: values here are not in ns */
	const char *name = report_timing_name(run, main_timing(run));
	fprintf(out, "#[Timing  = %.*s]\n", (int)(strlen(name) - strlen("_ns")), name);
	print_buckets(out, h);
	fprintf(out, "#[Sum     = %12s, Overflow       = %12" PRIu64 "]\n", in_us(h->sum, text),
		h->overflow);
	fprintf(out, "#[Lowest  = %12s, Negative       = %12" PRIu64 "]\n", in_us(h->lowest, text),
		h->negative);
	fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", summary.mean / NS_PER_US,
		summary.stddev / NS_PER_US);
	fprintf(out, "#[Max     = %12s, Total count    = %12" PRIu64 "]\n",
		in_us(summary.count ? summary.max : 0, text), summary.count);
	fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", HISTOGRAM_OCTAVES + 1,
		1 << HISTOGRAM_BITS);
}

const struct report_format report_hdr = {.name = "hdr", .summary = hdr_summary};
