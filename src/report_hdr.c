/* The percentile distribution that HdrHistogram writes (.hgrm) and its plotters read. Values are
 * in microseconds. */
#include "report.h"

#include <inttypes.h>
#include <math.h>

/* Steps between two halvings of the distance to 100 %, as HdrHistogram's default has them. */
#define TICKS_PER_HALF_DISTANCE 5

/* The percentile after PERCENT. */
static double next_percentile(double percent)
{
	double halvings = floor(log2(100 / (100 - percent))) + 1;
	return percent + 100 / (TICKS_PER_HALF_DISTANCE * exp2(halvings));
}

static uint64_t count_up_to(const struct histogram *h, int64_t value)
{
	uint64_t count = 0;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && histogram_lowest(i) <= value; i++)
		count += h->buckets[i];
	return count;
}

static void hdr_summary(FILE *out, const struct report_run *run, const struct report_summary *s)
{
	(void)run;
	const struct histogram *h = &s->total.stats.timings[TIMING_LATENCY];
	struct histogram_summary summary;
	histogram_summarize(h, &summary);
	fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	uint64_t seen = 0;
	for (double percent = 0; summary.count && seen < summary.count;
		percent = next_percentile(percent)) {
		int64_t value =
			percent > 0 ? histogram_percentile(h, &summary, percent) : summary.min;
		seen = count_up_to(h, value);
		if (seen == summary.count)
			break; /* the last line has no finite inverse */
		fprintf(out, "%12.3f %2.12f %10" PRIu64 " %14.2f\n", (double)value / NS_PER_US,
			percent / 100, seen, 100 / (100 - percent));
	}
	if (summary.count)
		fprintf(out, "%12.3f %2.12f %10" PRIu64 "\n", (double)summary.max / NS_PER_US, 1.0,
			summary.count);
	fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", summary.mean / NS_PER_US,
		summary.stddev / NS_PER_US);
	fprintf(out, "#[Max     = %12.3f, Total count    = %12" PRIu64 "]\n",
		summary.count ? (double)summary.max / NS_PER_US : 0, summary.count);
	fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", HISTOGRAM_OCTAVES + 1,
		1 << HISTOGRAM_BITS);
}

const struct report_format report_hdr = {.name = "hdr", .summary = hdr_summary};
