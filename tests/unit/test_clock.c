/* clock: one clock's time on the other, and on the calendar. */
#include "clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TRIES    1000
#define EXACT_NS (5 * NS_PER_US) /* in a try that nobody interrupts */

/* Between two readings of the realtime clock there is one of the other. */
static void test_realtime_at_is_exact_to_microseconds(void **state)
{
	(void)state;
	int64_t best_ns = INT64_MAX;
	for (int i = 0; i < TRIES && best_ns > EXACT_NS; i++) {
		int64_t before_ns = clock_realtime_ns();
		int64_t monotonic_ns = clock_monotonic_ns();
		int64_t after_ns = clock_realtime_ns();
		int64_t at_ns = clock_realtime_at_ns(monotonic_ns);
		int64_t error_ns = at_ns < before_ns ? before_ns - at_ns : at_ns - after_ns;
		if (error_ns < best_ns)
			best_ns = error_ns;
	}
	assert_true(best_ns <= EXACT_NS);
}

/* However long ago it was. */
static void test_realtime_at_keeps_distances(void **state)
{
	(void)state;
	int64_t best_ns = INT64_MAX;
	for (int i = 0; i < TRIES && best_ns > EXACT_NS; i++) {
		int64_t now_ns = clock_monotonic_ns();
		int64_t distance_ns = clock_realtime_at_ns(now_ns)
			- clock_realtime_at_ns(now_ns - 3600 * NS_PER_S);
		int64_t error_ns = distance_ns - 3600 * NS_PER_S;
		if (error_ns < 0)
			error_ns = -error_ns;
		if (error_ns < best_ns)
			best_ns = error_ns;
	}
	assert_true(best_ns <= EXACT_NS);
}

/* All digits. */
static void test_utc(void **state)
{
	(void)state;
	char text[CLOCK_UTC_SIZE];
	clock_format_utc(INT64_C(1796070000000000001), text);
	assert_string_equal(text, "2026-11-30T20:20:00.000000001Z");
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_realtime_at_is_exact_to_microseconds),
		cmocka_unit_test(test_realtime_at_keeps_distances),
		cmocka_unit_test(test_utc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
