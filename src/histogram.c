#include "histogram.h"

#include <math.h>
#include <string.h>

/* Empties it. */
void histogram_reset(struct histogram *h)
{
	memset(h, 0, sizeof *h);
	histogram_cut(h);
}

/* Forgets the extremes. */
void histogram_cut(struct histogram *h)
{
	h->min = INT64_MAX;
	h->max = -1;
	h->lowest = 0;
}

/* Where a bucket starts: the inverse of histogram_index(). */
int64_t histogram_lowest(unsigned index)
{
	unsigned octave = index >> HISTOGRAM_BITS;
	if (octave < 2)
		return index;
	unsigned shift = octave - 1;
	return (int64_t)(index - (shift << HISTOGRAM_BITS)) << shift;
}

/* Where it ends. */
int64_t histogram_highest(unsigned index)
{
	return histogram_lowest(index + 1) - 1;
}

/* The middle of bucket INDEX, as far as there are values. */
static double middle(const struct histogram *h, unsigned index)
{
	int64_t low = histogram_lowest(index), high = histogram_highest(index);
	if (low < h->min)
		low = h->min;
	if (high > h->max)
		high = h->max;
	return (double)low + (double)(high - low) / 2;
}

/* Counts a value that has no bucket of its own. */
void histogram_record_outside(struct histogram *h, int64_t value)
{
	if (value < 0) {
		h->negative++;
		if (value < h->lowest)
			h->lowest = value;
		return;
	}
	h->overflow++;
	h->buckets[histogram_index(HISTOGRAM_MAX_NS)]++;
	h->sum += value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

/* Exact sum of two histograms. */
void histogram_add(struct histogram *sum, const struct histogram *part)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum->buckets[i] += part->buckets[i];
	sum->sum += part->sum;
	sum->negative += part->negative;
	sum->overflow += part->overflow;
	if (part->min < sum->min)
		sum->min = part->min;
	if (part->max > sum->max)
		sum->max = part->max;
	if (part->lowest < sum->lowest)
		sum->lowest = part->lowest;
}

/* What came between two copies. */
void histogram_subtract(
	struct histogram *period, const struct histogram *later, const struct histogram *earlier)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		period->buckets[i] = later->buckets[i] - earlier->buckets[i];
	period->sum = later->sum - earlier->sum;
	period->negative = later->negative - earlier->negative;
	period->overflow = later->overflow - earlier->overflow;
	period->min = later->min;
	period->max = later->max;
	period->lowest = later->lowest;
}

/* Count, extremes, mean and standard deviation. */
void histogram_summarize(const struct histogram *h, struct histogram_summary *summary)
{
	*summary = (struct histogram_summary){.min = h->min, .max = h->max};
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		summary->count += h->buckets[i];
	if (!summary->count)
		return;
	summary->mean = (double)h->sum / (double)summary->count;
	double squares = 0;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->buckets[i])
			continue;
		double distance = middle(h, i) - summary->mean;
		squares += (double)h->buckets[i] * distance * distance;
	}
	summary->stddev = sqrt(squares / (double)summary->count);
}

/* Nearest rank, read from the buckets. */
int64_t histogram_percentile(
	const struct histogram *h, const struct histogram_summary *summary, double percent)
{
	/* 99.9 % of 1000 is 999, not the 999.0000000000001 of binary fractions */
	double exact = percent / 100 * (double)summary->count;
	uint64_t rank = (uint64_t)ceil(exact - exact * 1e-15);
	uint64_t seen = 0;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && rank < summary->count; i++) {
		seen += h->buckets[i];
		int64_t highest = histogram_highest(i);
		if (seen && seen >= rank)
			return highest < summary->max ? highest : summary->max;
	}
	return summary->max;
}
