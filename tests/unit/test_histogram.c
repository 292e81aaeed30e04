/* histogram: buckets against exact values, and sums, differences and cuts of histograms. */
#include "histogram.h"
#include "mix.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOUR_NS    HISTOGRAM_MAX_NS
#define LARGE      1000000
#define HIGHEST(I) (histogram_lowest((I) + 1) - 1)

#define NS_PER_STEP INT64_C(10000000000) /* by which a clock is set back */

/* ---- helpers ---- */

/* In [0, 1). */
static double next_fraction(uint64_t *state)
{
	return (double)(mix_next(state) >> 11) / 9007199254740992.0;
}

/* For qsort. */
static int compare_values(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Into an emptied histogram. */
static void record_all(struct histogram *h, const int64_t *values, size_t count)
{
	histogram_reset(h);
	for (size_t i = 0; i < count; i++)
		histogram_record(h, values[i]);
}

/* One percentile of a histogram, with a summary of its own. */
static int64_t percentile(const struct histogram *h, double percent)
{
	struct histogram_summary summary;
	histogram_summarize(h, &summary);
	return histogram_percentile(h, &summary, percent);
}

/* As a value. */
static struct histogram_summary summarize(const struct histogram *h)
{
	struct histogram_summary summary;
	histogram_summarize(h, &summary);
	return summary;
}

/* A difference that rounding explains. */
static void assert_near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.17g is not within %g of %.17g", value, tolerance, expected);
}

/* Every percentile of VALUES, which get sorted, against the nearest rank by its definition. */
static void check_percentiles(int64_t *values, size_t count)
{
	static const uint64_t PARTS_PER_MILLION[] = {1, 10, 1000, 10000, 100000, 250000, 500000,
		750000, 900000, 950000, 990000, 999000, 999900, 999990, 999999, 1000000};
	static struct histogram h;
	record_all(&h, values, count);
	qsort(values, count, sizeof *values, compare_values);
	for (size_t i = 0; i < sizeof PARTS_PER_MILLION / sizeof *PARTS_PER_MILLION; i++) {
		uint64_t parts = PARTS_PER_MILLION[i];
		uint64_t rank = (parts * count + 999999) / 1000000;
		int64_t exact = values[rank - 1];
		int64_t read = percentile(&h, (double)parts / 10000);
		if (read < exact || read > values[count - 1]
			|| (double)read >= (double)exact * (1 + 1.0 / 128) + 1)
			fail_msg("%g %%: %lld for %lld", (double)parts / 10000, (long long)read,
				(long long)exact);
	}
}

/* ---- shapes of distributions ---- */

/* From 1 ns to one hour, every power of ten alike. */
static int64_t log_uniform(uint64_t *state)
{
	return (int64_t)exp(next_fraction(state) * log((double)HOUR_NS));
}

/* Mean 50 us. */
static int64_t exponential(uint64_t *state)
{
	return (int64_t)(-50000 * log(1 - next_fraction(state)));
}

/* Around the border between exact and shared buckets. */
static int64_t small_uniform(uint64_t *state)
{
	return (int64_t)(mix_next(state) % 1000);
}

/* Nearly all in the last octave. */
static int64_t large_uniform(uint64_t *state)
{
	return (int64_t)(mix_next(state) % (uint64_t)(HOUR_NS + 1));
}

/* 1 in 100 is a thousand times slower. */
static int64_t two_peaks(uint64_t *state)
{
	return (mix_next(state) % 100 ? 20000 : 20000000) + (int64_t)(mix_next(state) % 100);
}

/* Every percentile is the same. */
static int64_t constant(uint64_t *state)
{
	(void)state;
	return 123456789;
}

/* The promise of the header, for distributions of very different shapes. */
static void test_percentiles_of_a_million_values_are_within_the_bound(void **state)
{
	(void)state;
	static int64_t (*const SHAPES[])(uint64_t *) = {
		log_uniform, exponential, small_uniform, large_uniform, two_peaks, constant};
	int64_t *values = malloc(LARGE * sizeof *values);
	uint64_t seed = 20261130;
	for (size_t shape = 0; shape < sizeof SHAPES / sizeof *SHAPES; shape++) {
		for (size_t i = 0; i < LARGE; i++)
			values[i] = SHAPES[shape](&seed);
		check_percentiles(values, LARGE);
	}
	free(values);
}

/* Rounding of ranks shows with few values. */
static void test_percentiles_of_few_values_are_within_the_bound(void **state)
{
	(void)state;
	int64_t values[300];
	uint64_t seed = 1;
	for (size_t count = 1; count <= 300; count++) {
		for (size_t i = 0; i < count; i++)
			values[i] = log_uniform(&seed);
		check_percentiles(values, count);
	}
}

/* ---- buckets ---- */

/* Index and lowest are inverse at every border. */
static void test_buckets_follow_one_another_without_gaps(void **state)
{
	(void)state;
	assert_int_equal(histogram_lowest(0), 0);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		assert_true(HIGHEST(i) >= histogram_lowest(i));
		assert_int_equal(histogram_index(histogram_lowest(i)), i);
		assert_int_equal(histogram_index(HIGHEST(i)), i);
		assert_int_equal(histogram_highest(i), HIGHEST(i));
	}
	assert_int_equal(HIGHEST(HISTOGRAM_BUCKETS - 1), (INT64_C(1) << 42) - 1);
	assert_true(histogram_index(HISTOGRAM_MAX_NS) < HISTOGRAM_BUCKETS);
}

/* The width is the bound of the error. */
static void test_a_bucket_is_at_most_a_128th_wide(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		int64_t width = HIGHEST(i) - histogram_lowest(i) + 1;
		if (histogram_lowest(i) < 256)
			assert_int_equal(width, 1);
		else
			assert_true(width * 128 <= histogram_lowest(i));
	}
}

/* These have a bucket each. */
static void test_values_up_to_255_are_exact(void **state)
{
	(void)state;
	static struct histogram h;
	for (int64_t value = 0; value <= 255; value++) {
		histogram_reset(&h);
		histogram_record(&h, value);
		histogram_record(&h, 1000);
		assert_int_equal(h.buckets[value], 1);
		assert_int_equal(percentile(&h, 50), value);
	}
}

/* They must show in the counts, the mean and the maximum. */
static void test_values_above_an_hour_are_clamped_and_counted(void **state)
{
	(void)state;
	static struct histogram h;
	histogram_reset(&h);
	histogram_record(&h, HOUR_NS);
	assert_int_equal(h.overflow, 0);
	histogram_record(&h, HOUR_NS + 1);
	histogram_record(&h, 3 * HOUR_NS);
	assert_int_equal(h.overflow, 2);
	assert_int_equal(h.buckets[histogram_index(HOUR_NS)], 3);
	struct histogram_summary s = summarize(&h);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.min, HOUR_NS);
	assert_int_equal(s.max, 3 * HOUR_NS);
	assert_near(s.mean, (5.0 * HOUR_NS + 1) / 3, 1);
	assert_int_equal(percentile(&h, 100), 3 * HOUR_NS);
	assert_int_equal(percentile(&h, 50), HIGHEST(histogram_index(HOUR_NS)));
}

/* Not even in the sum. */
static void test_the_largest_value_does_not_overflow(void **state)
{
	(void)state;
	static struct histogram h;
	histogram_reset(&h);
	histogram_record(&h, INT64_MAX);
	histogram_record(&h, INT64_MAX);
	struct histogram_summary s = summarize(&h);
	assert_int_equal(s.max, INT64_MAX);
	assert_near(s.mean, (double)INT64_MAX, 1);
}

/* Clocks of two machines differ: such a latency must not better the percentiles. */
static void test_negative_values_are_counted_apart(void **state)
{
	(void)state;
	static struct histogram h;
	histogram_reset(&h);
	histogram_record(&h, -5);
	histogram_record(&h, INT64_MIN);
	histogram_record(&h, -1);
	assert_int_equal(summarize(&h).count, 0);
	assert_true(h.sum == 0);
	histogram_record(&h, 40);
	assert_int_equal(h.negative, 3);
	assert_int_equal(h.lowest, INT64_MIN);
	assert_int_equal(h.overflow, 0);
	struct histogram_summary s = summarize(&h);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.min, 40);
	assert_int_equal(percentile(&h, 0.0001), 40);
	assert_true(s.mean == 40);
}

/* In the middle of a run: the other values are as if there had not been any. */
static void test_a_clock_that_steps_back_changes_no_other_number(void **state)
{
	(void)state;
	static struct histogram stepped, steady;
	uint64_t seed = 5;
	histogram_reset(&stepped);
	histogram_reset(&steady);
	for (int i = 0; i < 10000; i++) {
		int64_t value = exponential(&seed);
		histogram_record(&steady, value);
		histogram_record(&stepped, value);
		if (i >= 3000 && i < 5000)
			histogram_record(&stepped, value - NS_PER_STEP);
	}
	assert_int_equal(stepped.negative, 2000);
	assert_true(stepped.lowest < -NS_PER_STEP / 2 && stepped.lowest >= -NS_PER_STEP);
	struct histogram_summary a = summarize(&stepped), b = summarize(&steady);
	assert_memory_equal(&a, &b, sizeof a);
	for (double percent = 0.5; percent <= 100; percent += 0.5)
		assert_int_equal(percentile(&stepped, percent), percentile(&steady, percent));
}

/* A single one among fast ones: exact where it is the maximum, within the bound elsewhere. */
static void test_an_hour_among_microseconds(void **state)
{
	(void)state;
	static struct histogram h;
	histogram_reset(&h);
	for (int i = 0; i < 998; i++)
		histogram_record(&h, 5000);
	histogram_record(&h, HOUR_NS);
	assert_int_equal(h.overflow, 0);
	assert_int_equal(summarize(&h).max, HOUR_NS);
	assert_int_equal(percentile(&h, 100), HOUR_NS);
	assert_int_equal(percentile(&h, 99.95), HOUR_NS);
	histogram_record(&h, HOUR_NS + 1); /* the maximum is no end of a bucket any more */
	assert_int_equal(h.overflow, 1);
	assert_int_equal(summarize(&h).max, HOUR_NS + 1);
	int64_t hour = percentile(&h, 99.9);
	assert_true(hour >= HOUR_NS && hour - HOUR_NS <= HOUR_NS / 128);
	assert_true(percentile(&h, 99.8) < 5000 + 5000 / 128);
	assert_near(summarize(&h).mean, (998 * 5000 + 2.0 * HOUR_NS + 1) / 1000, 1e-3);
}

/* ---- summaries ---- */

/* Nothing may be divided by a count of 0. */
static void test_an_empty_histogram_has_no_values(void **state)
{
	(void)state;
	static struct histogram h;
	histogram_reset(&h);
	struct histogram_summary s = summarize(&h);
	assert_int_equal(s.count, 0);
	assert_false(isnan(s.mean) || isnan(s.stddev));
	assert_int_equal(h.min, INT64_MAX);
	assert_int_equal(h.max, -1);
	assert_int_equal(h.lowest, 0);
}

/* In exact buckets both are exact. */
static void test_mean_and_deviation_of_a_known_set(void **state)
{
	(void)state;
	static struct histogram h;
	static const int64_t VALUES[] = {2, 4, 4, 4, 5, 5, 7, 9};
	record_all(&h, VALUES, 8);
	struct histogram_summary s = summarize(&h);
	assert_true(s.mean == 5);
	assert_near(s.stddev, 2, 1e-12);
	assert_int_equal(s.min, 2);
	assert_int_equal(s.max, 9);
}

/* From the middles of buckets. */
static void test_the_deviation_of_large_values_is_close(void **state)
{
	(void)state;
	static struct histogram h;
	static const int64_t VALUES[] = {1000000, 3000000, 5000000, 7000000, 9000000};
	record_all(&h, VALUES, 5);
	struct histogram_summary s = summarize(&h);
	assert_true(s.mean == 5000000);
	assert_near(s.stddev, sqrt(8) * 1e6, sqrt(8) * 1e6 / 128);
}

/* 99.9 is not a binary fraction: a rank must not be off by one. */
static void test_999_per_mille_of_a_thousand_is_the_999th(void **state)
{
	(void)state;
	static struct histogram h;
	histogram_reset(&h);
	for (int i = 0; i < 998; i++)
		histogram_record(&h, 1);
	histogram_record(&h, 2);
	histogram_record(&h, 3);
	assert_int_equal(percentile(&h, 99.8), 1);
	assert_int_equal(percentile(&h, 99.80001), 2);
	assert_int_equal(percentile(&h, 99.9), 2);
	assert_int_equal(percentile(&h, 99.90001), 3);
	assert_int_equal(percentile(&h, 100), 3);
}

/* Whatever the width of its bucket. */
static void test_percentile_100_is_the_exact_maximum(void **state)
{
	(void)state;
	static struct histogram h;
	uint64_t seed = 3;
	histogram_reset(&h);
	for (int i = 0; i < 1000; i++) {
		histogram_record(&h, log_uniform(&seed));
		assert_int_equal(percentile(&h, 100), h.max);
	}
}

/* ---- sums, differences, cuts ---- */

/* All that can be added. */
static void assert_same_buckets(const struct histogram *a, const struct histogram *b)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (a->buckets[i] != b->buckets[i])
			fail_msg("bucket %u: %llu and %llu", i, (unsigned long long)a->buckets[i],
				(unsigned long long)b->buckets[i]);
	assert_true(a->sum == b->sum);
	assert_int_equal(a->negative, b->negative);
	assert_int_equal(a->overflow, b->overflow);
}

/* Now and then one that has no bucket. */
static int64_t any_value(uint64_t *state)
{
	switch (mix_next(state) % 50) {
	case 0: return -(int64_t)(mix_next(state) % 1000) - 1;
	case 1: return HOUR_NS + 1 + (int64_t)(mix_next(state) % 1000);
	default: return log_uniform(state);
	}
}

/* Threads are merged exactly: no percentile is ever averaged. */
static void test_four_parts_add_up_to_the_whole(void **state)
{
	(void)state;
	static struct histogram parts[4], whole, sum;
	uint64_t seed = 4;
	histogram_reset(&whole);
	histogram_reset(&sum);
	for (int i = 0; i < 4; i++)
		histogram_reset(&parts[i]);
	for (int i = 0; i < 100000; i++) {
		int64_t value = any_value(&seed);
		histogram_record(&whole, value);
		histogram_record(&parts[mix_next(&seed) % 4], value);
	}
	for (int i = 0; i < 4; i++)
		histogram_add(&sum, &parts[i]);
	assert_same_buckets(&sum, &whole);
	assert_memory_equal(&sum, &whole, sizeof sum);
	struct histogram_summary a = summarize(&sum), b = summarize(&whole);
	assert_int_equal(a.count, b.count);
	assert_int_equal(a.count + whole.negative, 100000);
	assert_true(a.mean == b.mean && a.stddev == b.stddev);
	for (double percent = 0.1; percent <= 100; percent += 0.1)
		assert_int_equal(percentile(&sum, percent), percentile(&whole, percent));
	for (int i = 3; i > 0; i--) /* in any order */
		histogram_add(&parts[0], &parts[i]);
	assert_memory_equal(&parts[0], &whole, sizeof whole);
}

/* On either side. */
static void test_adding_an_empty_histogram_changes_nothing(void **state)
{
	(void)state;
	static struct histogram h, empty, before;
	static const int64_t VALUES[] = {7, 70, 700};
	record_all(&h, VALUES, 3);
	histogram_reset(&empty);
	before = h;
	histogram_add(&h, &empty);
	assert_memory_equal(&h, &before, sizeof h);
	histogram_add(&empty, &h);
	assert_memory_equal(&empty, &before, sizeof h);
}

/* The difference of two copies, and its sum with the earlier one. */
static void test_periods_have_their_own_values(void **state)
{
	(void)state;
	static struct histogram h, first, later;
	histogram_reset(&h);
	histogram_record(&h, 10);
	histogram_record(&h, 1000000);
	histogram_record(&h, -3);
	first = h;
	histogram_cut(&h);
	histogram_record(&h, 20);
	histogram_record(&h, 30);
	histogram_record(&h, -1);
	histogram_record(&h, HOUR_NS + 5);
	later = h;
	histogram_subtract(&later, &later, &first);
	struct histogram_summary s = summarize(&later);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.min, 20);
	assert_int_equal(s.max, HOUR_NS + 5);
	assert_near(s.mean, (HOUR_NS + 55) / 3.0, 1e-3);
	assert_int_equal(later.negative, 1);
	assert_int_equal(later.lowest, -1);
	assert_int_equal(later.overflow, 1);
	histogram_add(&later, &first);
	assert_same_buckets(&later, &h);
	assert_int_equal(later.min, 10);
	assert_int_equal(later.lowest, -3);
}

/* Counts go on growing. */
static void test_a_cut_forgets_the_extremes_alone(void **state)
{
	(void)state;
	static struct histogram h, before;
	static const int64_t VALUES[] = {-9, 7, 70, 700};
	record_all(&h, VALUES, 4);
	before = h;
	histogram_cut(&h);
	assert_same_buckets(&h, &before);
	assert_int_equal(h.min, INT64_MAX);
	assert_int_equal(h.max, -1);
	assert_int_equal(h.lowest, 0);
}

/* ---- very many values ---- */

/* Adds H to itself, TIMES times. */
static void double_often(struct histogram *h, int times)
{
	while (times--)
		histogram_add(h, h);
}

/* Days at full speed. */
static void test_2_to_40_values_do_not_overflow(void **state)
{
	(void)state;
	static struct histogram h;
	static const int64_t VALUES[] = {100, HOUR_NS};
	record_all(&h, VALUES, 2);
	double_often(&h, 39);
	struct histogram_summary s = summarize(&h);
	assert_int_equal(s.count, UINT64_C(1) << 40);
	assert_true(h.sum == (__int128)(HOUR_NS + 100) << 39);
	assert_true(h.sum > INT64_MAX);
	assert_true(s.mean == (HOUR_NS + 100) / 2.0);
	assert_near(s.stddev, (HOUR_NS - 100) / 2.0, HOUR_NS / 256.0);
	assert_int_equal(percentile(&h, 50), 100);
	assert_int_equal(percentile(&h, 50.0001), HOUR_NS);
	assert_int_equal(percentile(&h, 100), HOUR_NS);
}

/* Whatever is true of 2^10 is true of each of them 2^30 times. */
static void test_2_to_40_values_of_all_sizes_have_the_percentiles_of_2_to_10(void **state)
{
	(void)state;
	static struct histogram h, few;
	uint64_t seed = 6;
	histogram_reset(&few);
	for (int i = 0; i < 1024; i++)
		histogram_record(&few, log_uniform(&seed));
	histogram_record(&few, -1);
	h = few;
	double_often(&h, 30);
	struct histogram_summary a = summarize(&h), b = summarize(&few);
	assert_int_equal(a.count, UINT64_C(1) << 40);
	assert_int_equal(h.negative, 1 << 30);
	assert_true(h.sum == few.sum << 30);
	assert_int_equal(a.min, b.min);
	assert_int_equal(a.max, b.max);
	assert_true(a.mean == b.mean);
	assert_near(a.stddev, b.stddev, b.stddev * 1e-12);
	for (double percent = 0.1; percent <= 100; percent += 0.1)
		assert_int_equal(percentile(&h, percent), percentile(&few, percent));
}

/* One slow message among very many must not be lost in the rounding of ranks. */
static void test_percentile_100_of_2_to_40_values_is_the_maximum(void **state)
{
	(void)state;
	static struct histogram h;
	histogram_reset(&h);
	histogram_record(&h, 100);
	double_often(&h, 40);
	histogram_record(&h, 5000000);
	assert_int_equal(percentile(&h, 99.99), 100);
	assert_int_equal(percentile(&h, 100), 5000000);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles_of_a_million_values_are_within_the_bound),
		cmocka_unit_test(test_percentiles_of_few_values_are_within_the_bound),
		cmocka_unit_test(test_buckets_follow_one_another_without_gaps),
		cmocka_unit_test(test_a_bucket_is_at_most_a_128th_wide),
		cmocka_unit_test(test_values_up_to_255_are_exact),
		cmocka_unit_test(test_values_above_an_hour_are_clamped_and_counted),
		cmocka_unit_test(test_the_largest_value_does_not_overflow),
		cmocka_unit_test(test_negative_values_are_counted_apart),
		cmocka_unit_test(test_a_clock_that_steps_back_changes_no_other_number),
		cmocka_unit_test(test_an_hour_among_microseconds),
		cmocka_unit_test(test_an_empty_histogram_has_no_values),
		cmocka_unit_test(test_mean_and_deviation_of_a_known_set),
		cmocka_unit_test(test_the_deviation_of_large_values_is_close),
		cmocka_unit_test(test_999_per_mille_of_a_thousand_is_the_999th),
		cmocka_unit_test(test_percentile_100_is_the_exact_maximum),
		cmocka_unit_test(test_four_parts_add_up_to_the_whole),
		cmocka_unit_test(test_adding_an_empty_histogram_changes_nothing),
		cmocka_unit_test(test_periods_have_their_own_values),
		cmocka_unit_test(test_a_cut_forgets_the_extremes_alone),
		cmocka_unit_test(test_2_to_40_values_do_not_overflow),
		cmocka_unit_test(test_2_to_40_values_of_all_sizes_have_the_percentiles_of_2_to_10),
		cmocka_unit_test(test_percentile_100_of_2_to_40_values_is_the_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
