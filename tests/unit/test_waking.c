/* waking: sleeps that end when they should, whatever waking takes. */
#include "waking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define US INT64_C(1000)

/* Sleeps COUNT times, LATENESS too long. */
static void sleep_often(struct waking *w, int count, int64_t lateness_ns)
{
	while (count--)
		waking_learn(w, lateness_ns);
}

static void test_nothing_is_known_at_first(void **state)
{
	(void)state;
	struct waking w = {0};
	assert_int_equal(waking_sleep_ns(&w, 500 * US), 500 * US);
	assert_int_equal(waking_sleep_ns(&w, 10), 10);
	assert_int_equal(waking_sleep_ns(&w, 0), 0);
}

static void test_the_first_sleep_tells(void **state)
{
	(void)state;
	struct waking w = {0};
	waking_learn(&w, 70 * US);
	assert_int_equal(waking_sleep_ns(&w, 1000 * US), 930 * US);
}

/* It is a sleep all the same, and never longer than what is left. */
static void test_a_short_wait_is_a_short_sleep(void **state)
{
	(void)state;
	struct waking w = {0};
	waking_learn(&w, 70 * US);
	assert_int_equal(waking_sleep_ns(&w, 60 * US), WAKING_SLEEP_MIN_NS);
	assert_int_equal(waking_sleep_ns(&w, 500), 500);
	assert_int_equal(waking_sleep_ns(&w, 0), 0);
}

/* Half of them are earlier, half of them later. */
static void test_it_finds_the_median(void **state)
{
	(void)state;
	struct waking w = {0};
	for (int i = 0; i < 1000; i++)
		waking_learn(&w, (int64_t[]){20, 30, 40, 50, 5000}[i % 5] * US);
	assert_in_range(w.lateness_ns, 36 * US, 44 * US);
}

/* One that was very late, because the processor was away, is one of many. */
static void test_an_outlier_counts_for_one(void **state)
{
	(void)state;
	struct waking w = {0};
	sleep_often(&w, 100, 20 * US);
	int64_t before_ns = w.lateness_ns;
	waking_learn(&w, 3000 * 1000 * US);
	assert_in_range(w.lateness_ns, before_ns, before_ns + WAKING_STEP_NS);
	struct waking fresh = {0};
	waking_learn(&fresh, 3000 * 1000 * US);
	assert_int_equal(fresh.lateness_ns, WAKING_LATENESS_MAX_NS);
}

/* Neither below nothing, nor above the limit for long. */
static void test_bounds(void **state)
{
	(void)state;
	struct waking w = {0};
	sleep_often(&w, 1000, 5000 * US);
	assert_in_range(w.lateness_ns, WAKING_LATENESS_MAX_NS - WAKING_STEP_NS,
		WAKING_LATENESS_MAX_NS + WAKING_STEP_NS);
	sleep_often(&w, 1000, 0);
	assert_in_range(w.lateness_ns, 0, WAKING_STEP_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_known_at_first),
		cmocka_unit_test(test_the_first_sleep_tells),
		cmocka_unit_test(test_a_short_wait_is_a_short_sleep),
		cmocka_unit_test(test_it_finds_the_median),
		cmocka_unit_test(test_an_outlier_counts_for_one),
		cmocka_unit_test(test_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
