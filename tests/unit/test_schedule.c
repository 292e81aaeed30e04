/* schedule: when messages are due, however long, however fast. */
#include "schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_NS INT64_C(5000000000000)
#define S_NS     INT64_C(1000000000)

static struct schedule start(double rate_per_s, uint64_t batch, uint64_t seed)
{
	struct schedule s;
	schedule_start(&s, &(struct schedule_options){rate_per_s, batch, seed}, START_NS);
	return s;
}

/* Relative to the start. */
static void assert_due(const struct schedule *s, int64_t since_start_ns)
{
	assert_int_equal(schedule_due_ns(s) - START_NS, since_start_ns);
}

static void take(struct schedule *s, uint64_t count)
{
	while (count--)
		schedule_take(s);
}

static void test_gaps_are_even(void **state)
{
	(void)state;
	struct schedule s = start(1000, 1, 0);
	for (int64_t i = 0; i < 5000; i++) {
		assert_due(&s, i * S_NS / 1000);
		schedule_take(&s);
	}
}

/* From one a minute to ten million a second, rounding does not add up. */
static void test_nothing_adds_up(void **state)
{
	(void)state;
	static const struct {
		double rate_per_s;
		uint64_t count;
		int64_t due_ns;
	} CASES[] = {
		{1.0 / 60, 60 * 24, 86400 * S_NS},
		{0.5, 1800, 3600 * S_NS},
		{7, 7000000, 1000000 * S_NS},
		{3, 3 * 1000000 + 1, 1000000 * S_NS + S_NS / 3},
		{99, 99000000, 1000000 * S_NS},
		{1e7, 36000000, 3600 * S_NS / 1000},
	};
	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		struct schedule s = start(CASES[i].rate_per_s, 1, 0);
		take(&s, CASES[i].count);
		assert_in_range(schedule_due_ns(&s) - START_NS + 1, CASES[i].due_ns,
			CASES[i].due_ns + 2); /* give or take 1 ns */
	}
}

static void test_batches_are_due_together(void **state)
{
	(void)state;
	struct schedule s = start(1000, 10, 0);
	for (int64_t batch = 0; batch < 100; batch++)
		for (int i = 0; i < 10; i++) {
			assert_due(&s, batch * S_NS / 100);
			schedule_take(&s);
		}
}

/* However many are passed, at once or one by one. */
static void test_pass_goes_to_the_first_that_is_not_due(void **state)
{
	(void)state;
	static const double RATES[] = {0.5, 7, 1000, 99999.9, 1e7};
	static const int64_t STEPS_NS[] = {0, 1, 999, 1000000, 12345678, S_NS, 3 * S_NS};
	for (size_t r = 0; r < sizeof RATES / sizeof *RATES; r++)
		for (uint64_t batch = 1; batch < 8; batch += 3) {
			struct schedule by_pass = start(RATES[r], batch, 0), by_one = by_pass;
			int64_t now_ns = START_NS - 1;
			assert_int_equal(schedule_pass(&by_pass, now_ns), 0);
			for (size_t i = 0; i < sizeof STEPS_NS / sizeof *STEPS_NS; i++) {
				now_ns += STEPS_NS[i];
				uint64_t expected = 0;
				if (RATES[r] * (double)STEPS_NS[i] / 1e9 > 1e6)
					continue;
				for (; schedule_due_ns(&by_one) <= now_ns; expected++)
					schedule_take(&by_one);
				assert_int_equal(schedule_pass(&by_pass, now_ns), expected);
				assert_int_equal(
					schedule_due_ns(&by_pass), schedule_due_ns(&by_one));
			}
		}
}

/* Some of a batch may have been taken. */
static void test_pass_counts_what_is_left_of_a_batch(void **state)
{
	(void)state;
	struct schedule s = start(1000, 10, 0);
	take(&s, 13);
	assert_int_equal(schedule_pass(&s, START_NS + 20 * 1000000), 7 + 10);
	assert_due(&s, 30 * 1000000);
}

/* A stall of a year at ten million a second is passed as quickly as any. */
static void test_a_long_stall_is_passed_at_once(void **state)
{
	(void)state;
	struct schedule s = start(1e7, 1, 0);
	uint64_t passed = schedule_pass(&s, START_NS + 365 * 86400 * S_NS);
	assert_in_range(passed, UINT64_C(315360000000000), UINT64_C(315360000000002));
}

/* One in ten years, and one that is never due. */
static void test_what_is_beyond_the_clock_is_never_due(void **state)
{
	(void)state;
	struct schedule s = start(1.0 / (3650 * 86400), 1, 0);
	schedule_take(&s);
	assert_in_range(schedule_due_ns(&s) - START_NS, 3650 * 86400 * S_NS - 100,
		3650 * 86400 * S_NS + 100); /* the rate is a double */
	take(&s, 100);
	assert_int_equal(schedule_due_ns(&s), INT64_MAX);
	assert_int_equal(schedule_pass(&s, INT64_MAX - 1), 0);
}

static void test_poisson_gaps_are_exponential(void **state)
{
	(void)state;
	struct schedule s = start(1000, 1, 42);
	assert_due(&s, 0);
	enum { COUNT = 200000 };
	int short_ones = 0, long_ones = 0;
	int64_t before_ns = schedule_due_ns(&s);
	for (int i = 0; i < COUNT; i++) {
		schedule_take(&s);
		int64_t gap_ns = schedule_due_ns(&s) - before_ns;
		before_ns = schedule_due_ns(&s);
		assert_true(gap_ns >= 0);
		short_ones += gap_ns < 693147; /* ln 2 / rate: the median */
		long_ones += gap_ns > 4605170; /* ln 100 / rate: one in a hundred */
	}
	/* within four standard deviations */
	assert_in_range(short_ones, COUNT / 2 - 900, COUNT / 2 + 900);
	assert_in_range(long_ones, COUNT / 100 - 180, COUNT / 100 + 180);
	double mean_ns = (double)(before_ns - START_NS) / COUNT;
	assert_true(mean_ns > 0.99e6 && mean_ns < 1.01e6);
}

static void test_poisson_repeats_with_its_seed(void **state)
{
	(void)state;
	struct schedule a = start(50, 3, 7), b = start(50, 3, 7), c = start(50, 3, 8);
	int different = 0;
	for (int i = 0; i < 300; i++) {
		assert_int_equal(schedule_due_ns(&a), schedule_due_ns(&b));
		different += schedule_due_ns(&a) != schedule_due_ns(&c);
		schedule_take(&a);
		schedule_take(&b);
		schedule_take(&c);
	}
	assert_in_range(different, 295, 297); /* all but the first batch */
}

static void test_poisson_is_passed_one_by_one(void **state)
{
	(void)state;
	struct schedule s = start(1000, 1, 5), other = s;
	uint64_t passed = schedule_pass(&s, START_NS + S_NS), expected = 0;
	for (; schedule_due_ns(&other) <= START_NS + S_NS; expected++)
		schedule_take(&other);
	assert_int_equal(passed, expected);
	assert_in_range(passed, 870, 1130);
}

static void test_who_comes_late_is_in_step(void **state)
{
	(void)state;
	struct schedule_options o = {10, 1, 0};
	assert_int_equal(schedule_align_ns(&o, 1000, 500), 1000);
	assert_int_equal(schedule_align_ns(&o, 1000, 1000), 1000);
	assert_int_equal(schedule_align_ns(&o, 1000, 1001), 1000 + S_NS / 10);
	assert_int_equal(schedule_align_ns(&o, 1000, 1000 + S_NS), 1000 + S_NS);
	o.batch = 5;
	assert_int_equal(schedule_align_ns(&o, 1000, 1001), 1000 + S_NS / 2);
}

static void test_a_start_beyond_the_clock_is_never(void **state)
{
	(void)state;
	struct schedule_options o = {0.001, 1000000000, 0};
	assert_int_equal(schedule_align_ns(&o, -1796115629 * S_NS, 1000), INT64_MAX);
	struct schedule s;
	schedule_start(&s, &o, INT64_MAX);
	assert_int_equal(schedule_pass(&s, INT64_MAX - 1), 0);
	assert_int_equal(schedule_due_ns(&s), INT64_MAX);
}

static void test_what_is_taken_of_a_batch_has_its_share_of_time(void **state)
{
	(void)state;
	struct schedule s = start(1000, 4, 0);
	assert_int_equal(schedule_end_ns(&s), START_NS);
	for (int64_t i = 1; i <= 9; i++) {
		schedule_take(&s);
		assert_int_equal(schedule_end_ns(&s), START_NS + i * S_NS / 1000);
	}
	s = start(0.001, 1000000000, 0);
	schedule_take(&s);
	assert_int_equal(schedule_end_ns(&s), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gaps_are_even),
		cmocka_unit_test(test_nothing_adds_up),
		cmocka_unit_test(test_batches_are_due_together),
		cmocka_unit_test(test_pass_goes_to_the_first_that_is_not_due),
		cmocka_unit_test(test_pass_counts_what_is_left_of_a_batch),
		cmocka_unit_test(test_a_long_stall_is_passed_at_once),
		cmocka_unit_test(test_what_is_beyond_the_clock_is_never_due),
		cmocka_unit_test(test_poisson_gaps_are_exponential),
		cmocka_unit_test(test_poisson_repeats_with_its_seed),
		cmocka_unit_test(test_poisson_is_passed_one_by_one),
		cmocka_unit_test(test_who_comes_late_is_in_step),
		cmocka_unit_test(test_a_start_beyond_the_clock_is_never),
		cmocka_unit_test(test_what_is_taken_of_a_batch_has_its_share_of_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
