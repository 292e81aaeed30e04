/* histogram: durations in ns, counted in buckets of log-linear width. Layer 0.
 *
 * Values below 2^(B+1) have a bucket each; above, every power of two is cut into 2^B buckets of
 * equal width, B = HISTOGRAM_BITS = 7. A bucket is at most 1/2^B of its lowest value wide, so a
 * value read back from it, which is the bucket's highest, exceeds the true one by less than 1/128
 * of it. (Highest, because a latency must not be made to look better than it was.) Values above
 * HISTOGRAM_MAX_NS (an hour) are counted in `overflow` and in the last bucket; negative ones in
 * `negative` and in no bucket.
 *
 * Counts only grow, so that the histogram of a period is the difference of two copies, and the
 * sum of two histograms is exact. Minimum and maximum cannot be subtracted: they are kept since
 * the last histogram_cut(), and belong to the period that the cut ends.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BITS    7
#define HISTOGRAM_MAX_NS  INT64_C(3600000000000)
#define HISTOGRAM_OCTAVES (42 - HISTOGRAM_BITS) /* 2^42 ns > one hour */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_OCTAVES + 1) << HISTOGRAM_BITS)

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	__int128 sum;      /* ns, of all values but negative ones */
	uint64_t negative; /* values below 0 */
	uint64_t overflow; /* values above HISTOGRAM_MAX_NS */
	int64_t min;       /* ns, exact, since the last cut; INT64_MAX if there is none */
	int64_t max;       /* ns, exact, since the last cut; -1 if there is none */
	int64_t lowest;    /* ns, the smallest negative value since the last cut, or 0 */
};

/* What a histogram says, all in ns; min, max, mean and stddev mean nothing when count is 0. */
struct histogram_summary {
	uint64_t count;
	int64_t min, max; /* exact */
	double mean;      /* exact but for rounding */
	double stddev;    /* of the population, from the buckets' middles */
};

/* Empties H; must be called before its first use. */
void histogram_reset(struct histogram *h);

/* The bucket of VALUE, which must be in 0 .. HISTOGRAM_MAX_NS. */
static inline unsigned histogram_index(int64_t value)
{
	/* the bit below the top B+1 bits of the value tells how far it must be shifted */
	unsigned shift =
		63 - HISTOGRAM_BITS - __builtin_clzll((uint64_t)value | 1 << HISTOGRAM_BITS);
	return (shift << HISTOGRAM_BITS) + (unsigned)(value >> shift);
}

/* The lowest value that bucket INDEX holds. */
int64_t histogram_lowest(unsigned index);

/* The highest one. */
int64_t histogram_highest(unsigned index);

/* Counts one value outside 0 .. HISTOGRAM_MAX_NS. */
void histogram_record_outside(struct histogram *h, int64_t value);

/* Counts one value. */
static inline void histogram_record(struct histogram *h, int64_t value)
{
	if (__builtin_expect((uint64_t)value > HISTOGRAM_MAX_NS, 0)) {
		histogram_record_outside(h, value);
		return;
	}
	h->buckets[histogram_index(value)]++;
	h->sum += value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

/* Starts a new period: forgets minimum and maximum, keeps the counts. */
void histogram_cut(struct histogram *h);

/* SUM += PART, where PART is of another time or place. */
void histogram_add(struct histogram *sum, const struct histogram *part);

/* PERIOD = LATER - EARLIER, two copies of one histogram; minimum and maximum are LATER's. PERIOD
 * may be LATER. */
void histogram_subtract(
	struct histogram *period, const struct histogram *later, const struct histogram *earlier);

void histogram_summarize(const struct histogram *h, struct histogram_summary *summary);

/* The value at or below which PERCENT (0 < PERCENT <= 100) of the values lie (nearest rank): the
 * highest value of the bucket in which the count reaches PERCENT/100 of all, rounded up; never
 * more than max. SUMMARY is of this H. Means nothing when count is 0. */
int64_t histogram_percentile(
	const struct histogram *h, const struct histogram_summary *summary, double percent);

#endif
