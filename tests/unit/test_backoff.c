/* backoff: how pauses between attempts grow, and how they differ. */
#include "backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS INT64_C(1000000)

/* The step before any doubling is 50 ms, and no step is above 5 s. */
static int64_t step_ns(int number)
{
	int64_t ns = 50 * MS;
	while (number-- && ns < 5000 * MS)
		ns *= 2;
	return ns < 5000 * MS ? ns : 5000 * MS;
}

static void test_pauses_double_up_to_a_limit(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct backoff b;
		backoff_start(&b, seed);
		for (int i = 0; i < 20; i++) {
			int64_t pause_ns = backoff_next_ns(&b);
			assert_in_range(pause_ns, step_ns(i) / 2, step_ns(i));
		}
	}
}

static void test_the_longest_is_five_seconds(void **state)
{
	(void)state;
	struct backoff b;
	backoff_start(&b, 1);
	for (int i = 0; i < 100; i++)
		backoff_next_ns(&b);
	for (int i = 0; i < 1000; i++)
		assert_in_range(backoff_next_ns(&b), 2500 * MS, 5000 * MS);
}

/* After a success, and not with the same random numbers. */
static void test_a_reset_begins_anew(void **state)
{
	(void)state;
	struct backoff b;
	backoff_start(&b, 7);
	int64_t first_ns = backoff_next_ns(&b);
	for (int i = 0; i < 5; i++)
		backoff_next_ns(&b);
	backoff_reset(&b);
	int64_t again_ns = backoff_next_ns(&b);
	assert_in_range(again_ns, 25 * MS, 50 * MS);
	assert_int_not_equal(again_ns, first_ns);
}

/* Over the whole half of the step: each tenth of it gets its share. */
static void test_pauses_are_spread_evenly(void **state)
{
	(void)state;
	unsigned tenths[10] = {0};
	for (uint64_t seed = 0; seed < 10000; seed++) {
		struct backoff b;
		backoff_start(&b, seed);
		int64_t into_ns = backoff_next_ns(&b) - 25 * MS;
		unsigned tenth = (unsigned)(into_ns * 10 / (25 * MS));
		tenths[tenth < 10 ? tenth : 9]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(tenths[i], 850, 1150); /* five standard deviations */
}

/* Two processes that have lost the same peer. */
static void test_seeds_differ(void **state)
{
	(void)state;
	struct backoff a, b;
	backoff_start(&a, 41);
	backoff_start(&b, 42);
	bool same = true;
	for (int i = 0; i < 3; i++)
		same = same && backoff_next_ns(&a) == backoff_next_ns(&b);
	assert_false(same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pauses_double_up_to_a_limit),
		cmocka_unit_test(test_the_longest_is_five_seconds),
		cmocka_unit_test(test_a_reset_begins_anew),
		cmocka_unit_test(test_pauses_are_spread_evenly),
		cmocka_unit_test(test_seeds_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
