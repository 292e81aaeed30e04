/* stats: sums and differences of counters, periods, and what the kernel says of the process. */
#include "stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNTERS (sizeof(struct counters) / sizeof(uint64_t))

/* One value for each counter, all different. */
static struct counters distinct(uint64_t first, uint64_t step)
{
	uint64_t values[COUNTERS];
	for (size_t i = 0; i < COUNTERS; i++)
		values[i] = first + i * i * step;
	struct counters n;
	memcpy(&n, values, sizeof n);
	return n;
}

/* By its position. */
static uint64_t counter(const struct counters *n, size_t i)
{
	uint64_t values[COUNTERS];
	memcpy(values, n, sizeof values);
	return values[i];
}

/* Says which differs. */
static void assert_same_counters(const struct counters *a, const struct counters *b)
{
	for (size_t i = 0; i < COUNTERS; i++)
		if (counter(a, i) != counter(b, i))
			fail_msg("counter %zu: %llu and %llu", i, (unsigned long long)counter(a, i),
				(unsigned long long)counter(b, i));
}

/* Whatever was there. */
static void test_reset_leaves_nothing(void **state)
{
	(void)state;
	static struct stats s;
	memset(&s, 0xa5, sizeof s);
	stats_reset(&s, TIMINGS_ALL);
	static const struct counters NONE;
	assert_same_counters(&s.n, &NONE);
	assert_int_equal(s.credit_lowest, UINT32_MAX);
	assert_int_equal(s.unsettled, 0);
	struct histogram_summary latency, stall;
	histogram_summarize(&s.timings[TIMING_LATENCY], &latency);
	histogram_summarize(&s.timings[TIMING_STALL], &stall);
	assert_int_equal(latency.count, 0);
	assert_int_equal(stall.count, 0);
	assert_int_equal(s.timings[TIMING_LATENCY].max, -1);
	assert_int_equal(s.timings[TIMING_STALL].min, INT64_MAX);
}

/* A counter that is forgotten in the loop would be lost. */
static void test_every_counter_is_added(void **state)
{
	(void)state;
	struct counters a = distinct(1000, 3), b = distinct(7, 11);
	counters_add(&a, &b);
	for (size_t i = 0; i < COUNTERS; i++)
		assert_int_equal(counter(&a, i), 1007 + i * i * 14);
	counters_add(&a, &a);
	for (size_t i = 0; i < COUNTERS; i++)
		assert_int_equal(counter(&a, i), 2 * (1007 + i * i * 14));
}

/* Into another and in place. */
static void test_every_counter_is_subtracted(void **state)
{
	(void)state;
	static struct stats later, earlier, period;
	stats_reset(&later, TIMINGS_ALL);
	stats_reset(&earlier, TIMINGS_ALL);
	stats_reset(&period, TIMINGS_ALL);
	later.n = distinct(1000, 30);
	earlier.n = distinct(10, 4);
	stats_subtract(&period, &later, &earlier);
	for (size_t i = 0; i < COUNTERS; i++)
		assert_int_equal(counter(&period.n, i), 990 + i * i * 26);
	stats_subtract(&later, &later, &earlier); /* in place */
	assert_same_counters(&later.n, &period.n);
}

/* These two are not counters. */
static void test_sums_take_the_least_credit_and_the_last_unsettled(void **state)
{
	(void)state;
	static struct stats sum, part;
	stats_reset(&sum, TIMINGS_ALL);
	stats_reset(&part, TIMINGS_ALL);
	part.credit_lowest = 40;
	part.unsettled = 9;
	histogram_record(&part.timings[TIMING_LATENCY], 100);
	histogram_record(&part.timings[TIMING_STALL], 200);
	histogram_record(&part.timings[TIMING_STALL], 300);
	stats_add(&sum, &part);
	assert_int_equal(sum.credit_lowest, 40);
	assert_int_equal(sum.unsettled, 9);
	part.credit_lowest = 50;
	part.unsettled = 2;
	stats_add(&sum, &part);
	assert_int_equal(sum.credit_lowest, 40);
	assert_int_equal(sum.unsettled, 2);
	assert_int_equal(sum.timings[TIMING_LATENCY].buckets[100], 2);
	assert_int_equal(sum.timings[TIMING_STALL].buckets[200], 2);
	assert_int_equal(sum.timings[TIMING_STALL].max, 300);
}

/* ---- a thread that counts, and a reporter that cuts ---- */

/* Different in each round, with extremes that tell the round. */
static void count_something(struct stats *s, int round)
{
	for (int i = 0; i < 10 + round; i++) {
		struct counters more = distinct((uint64_t)(rand() % 100), (uint64_t)round);
		counters_add(&s->n, &more);
		histogram_record(&s->timings[TIMING_LATENCY], (round + 1) * 1000 + i);
		histogram_record(&s->timings[TIMING_STALL], 5 - i);
	}
	s->credit_lowest = (uint32_t)(100 - round);
	s->unsettled = (uint64_t)round;
}

/* Cuts S as its owner does: a copy, then a new period. */
static struct stats *cut(struct stats *s, struct stats *copy)
{
	*copy = *s;
	stats_cut(s);
	return copy;
}

/* Exactly, whenever they were cut. */
static void test_periods_add_up_to_the_whole(void **state)
{
	(void)state;
	static struct stats s, last, now, period, total;
	srand(1);
	stats_reset(&s, TIMINGS_ALL);
	stats_reset(&last, TIMINGS_ALL);
	stats_reset(&total, TIMINGS_ALL);
	for (int round = 0; round < 20; round++) {
		count_something(&s, round);
		stats_subtract(&period, cut(&s, &now), &last);
		stats_add(&total, &period);
		last = now;
	}
	assert_same_counters(&total.n, &s.n);
	assert_memory_equal(total.timings[TIMING_LATENCY].buckets,
		s.timings[TIMING_LATENCY].buckets, sizeof s.timings[TIMING_LATENCY].buckets);
	assert_memory_equal(total.timings[TIMING_STALL].buckets, s.timings[TIMING_STALL].buckets,
		sizeof s.timings[TIMING_STALL].buckets);
	assert_true(total.timings[TIMING_LATENCY].sum == s.timings[TIMING_LATENCY].sum);
	assert_int_equal(total.timings[TIMING_STALL].negative, s.timings[TIMING_STALL].negative);
	assert_int_equal(total.timings[TIMING_LATENCY].min, 1000);
	assert_int_equal(total.timings[TIMING_LATENCY].max, 20000 + 28);
	assert_int_equal(total.timings[TIMING_STALL].lowest, 5 - 28);
	assert_int_equal(total.credit_lowest, 81);
	assert_int_equal(total.unsettled, 19);
}

/* Not to all that came before. */
static void test_extremes_belong_to_their_period(void **state)
{
	(void)state;
	static struct stats s, last, now, period;
	stats_reset(&s, TIMINGS_ALL);
	stats_reset(&last, TIMINGS_ALL);
	for (int round = 0; round < 5; round++) {
		count_something(&s, round);
		stats_subtract(&period, cut(&s, &now), &last);
		last = now;
		struct histogram_summary latency;
		histogram_summarize(&period.timings[TIMING_LATENCY], &latency);
		assert_int_equal(latency.count, 10 + round);
		assert_int_equal(latency.min, (round + 1) * 1000);
		assert_int_equal(latency.max, (round + 1) * 1000 + 9 + round);
		assert_int_equal(period.timings[TIMING_STALL].lowest, 5 - (9 + round));
		assert_int_equal(period.credit_lowest, 100 - round);
		assert_int_equal(period.unsettled, round);
	}
}

/* Differences are 0, extremes are those of nothing. */
static void test_a_period_without_traffic_is_empty(void **state)
{
	(void)state;
	static struct stats s, last, now, period;
	stats_reset(&s, TIMINGS_ALL);
	count_something(&s, 3);
	cut(&s, &last);
	stats_subtract(&period, cut(&s, &now), &last);
	static const struct counters NONE;
	assert_same_counters(&period.n, &NONE);
	struct histogram_summary latency;
	histogram_summarize(&period.timings[TIMING_LATENCY], &latency);
	assert_int_equal(latency.count, 0);
	assert_int_equal(period.credit_lowest, UINT32_MAX);
	assert_int_equal(period.unsettled, 3);
}

/* ---- names and the kernel ---- */

/* Names are part of the contract. */
static void test_time_causes_have_the_names_of_the_report(void **state)
{
	(void)state;
	assert_string_equal(time_cause_name(TIME_BUSY), "busy");
	assert_string_equal(time_cause_name(TIME_CREDIT), "credit");
	assert_string_equal(time_cause_name(TIME_SESSION), "session");
	assert_string_equal(time_cause_name(TIME_SOCKET), "socket");
	assert_string_equal(time_cause_name(TIME_SETTLEMENT), "settlement");
	assert_string_equal(time_cause_name(TIME_PACING), "pacing");
	assert_string_equal(time_cause_name(TIME_IDLE), "idle");
}

/* And the other counters are left alone. */
static void test_cpu_time_grows_with_work(void **state)
{
	(void)state;
	struct counters before = distinct(0, 1), after;
	stats_sample_cpu(&before);
	assert_int_equal(before.messages, 0); /* the others are left alone */
	assert_int_equal(before.content_bytes, 1);
	do {
		after = before;
		stats_sample_cpu(&after);
	} while (after.cpu_user_ns + after.cpu_system_ns
		< before.cpu_user_ns + before.cpu_system_ns + 10000000);
	assert_true(after.switches_involuntary >= before.switches_involuntary);
}

/* In bytes, not in pages or KiB. */
static void test_memory_grows_when_it_is_touched(void **state)
{
	(void)state;
	const size_t size = 16 << 20;
	struct memory before = memory_sample();
	assert_true(before.rss_bytes > 0);
	assert_true(before.rss_peak_bytes >= before.rss_bytes);
	char *block = malloc(size);
	volatile char *touched = block; /* or the writes would be optimized away */
	for (size_t i = 0; i < size; i += 4096)
		touched[i] = 1;
	struct memory after = memory_sample();
	free(block);
	assert_true(after.rss_bytes >= before.rss_bytes + size / 2);
	/* the kernel's own peak is behind by some pages for each processor */
	assert_true(memory_sample().rss_peak_bytes >= after.rss_bytes - size / 8);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reset_leaves_nothing),
		cmocka_unit_test(test_every_counter_is_added),
		cmocka_unit_test(test_every_counter_is_subtracted),
		cmocka_unit_test(test_sums_take_the_least_credit_and_the_last_unsettled),
		cmocka_unit_test(test_periods_add_up_to_the_whole),
		cmocka_unit_test(test_extremes_belong_to_their_period),
		cmocka_unit_test(test_a_period_without_traffic_is_empty),
		cmocka_unit_test(test_time_causes_have_the_names_of_the_report),
		cmocka_unit_test(test_cpu_time_grows_with_work),
		cmocka_unit_test(test_memory_grows_when_it_is_touched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
