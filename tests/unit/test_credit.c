/* credit: what is granted when, over whole runs. */
#include "credit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct course {
	uint64_t granted;          /* messages, the start included */
	uint64_t grants;           /* that were not 0, the start left out */
	uint32_t highest, lowest;  /* level after a grant, and before one */
	uint32_t largest, at_rest; /* largest grant; level at the end */
};

/* Takes MESSAGES, asking for no more than these. */
static struct course run(uint32_t window, uint32_t low, uint32_t add, uint64_t messages)
{
	struct credit c = {.window = window, .low = low, .add = add};
	struct course course = {.granted = credit_start(&c, messages)};
	course.highest = course.lowest = c.level;
	for (uint64_t taken = 0; taken < messages; taken++) {
		assert_true(c.level > 0);
		credit_take(&c);
		if (c.level < course.lowest)
			course.lowest = c.level;
		uint32_t grant = credit_grant(&c, messages - course.granted);
		course.granted += grant;
		course.grants += grant > 0;
		if (grant > course.largest)
			course.largest = grant;
		if (c.level > course.highest)
			course.highest = c.level;
	}
	course.at_rest = c.level;
	return course;
}

/* C has no max(). */
static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A run of few messages must not be sent more than it takes. */
static void test_start_grants_the_window_but_no_more_than_wanted(void **state)
{
	(void)state;
	struct credit c = {.window = 10, .low = 5, .add = 5};
	assert_int_equal(credit_start(&c, UINT64_MAX), 10);
	assert_int_equal(c.level, 10);
	assert_int_equal(credit_start(&c, 10), 10);
	assert_int_equal(credit_start(&c, 7), 7);
	assert_int_equal(c.level, 7);
	assert_int_equal(credit_start(&c, 0), 0);
	assert_int_equal(c.level, 0);
}

/* Grants are few: that is what LOW is for. */
static void test_nothing_is_granted_above_low(void **state)
{
	(void)state;
	struct credit c = {.window = 10, .low = 5, .add = 3};
	credit_start(&c, 100);
	for (int level = 9; level > 5; level--) {
		credit_take(&c);
		assert_int_equal(c.level, level);
		assert_int_equal(credit_grant(&c, 100), 0);
	}
	credit_take(&c);
	assert_int_equal(credit_grant(&c, 100), 3);
	assert_int_equal(c.level, 8);
	assert_int_equal(credit_grant(&c, 100), 0);
}

/* The end of a run: no message may be asked for twice. */
static void test_a_grant_is_no_more_than_wanted(void **state)
{
	(void)state;
	struct credit c = {.window = 10, .low = 9, .add = 5};
	credit_start(&c, 100);
	credit_take(&c);
	assert_int_equal(credit_grant(&c, 2), 2);
	assert_int_equal(c.level, 11);
	credit_take(&c);
	credit_take(&c);
	assert_int_equal(credit_grant(&c, 0), 0);
	assert_int_equal(c.level, 9);
	assert_int_equal(credit_grant(&c, 1), 1);
	assert_int_equal(c.level, 10);
}

/* Known numbers of grants. */
static void test_grants_of_a_run(void **state)
{
	(void)state;
	static const struct {
		uint32_t window, low, add;
		uint64_t messages, grants;
	} RUNS[] = {
		{1000, 500, 500, 1000000, 1998},
		{1000, 999, 1, 10000, 9000},
		{10, 0, 10, 100, 9},
		{10, 0, 10, 101, 10},
		{1, 0, 1, 50, 49},
		{10, 5, 100, 1000, 10},
		{100, 90, 3, 1000, 300},
		{10, 5, 5, 10, 0},
		{10, 5, 5, 3, 0},
		{10, 5, 5, 11, 1},
		{CREDIT_MAX, 1, 1, 5, 0},
	};
	for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
		struct course c = run(RUNS[i].window, RUNS[i].low, RUNS[i].add, RUNS[i].messages);
		assert_int_equal(c.grants, RUNS[i].grants);
		assert_int_equal(c.granted, RUNS[i].messages);
		assert_int_equal(c.at_rest, 0);
	}
}

/* All small settings: never stuck (run() asserts it), never above what the rules allow. */
static void test_every_small_setting_keeps_its_bounds(void **state)
{
	(void)state;
	const uint64_t messages = 60;
	for (uint32_t window = 1; window <= 12; window++)
		for (uint32_t low = 0; low < window; low++)
			for (uint32_t add = 1; add <= 20; add++) {
				struct course c = run(window, low, add, messages);
				assert_int_equal(c.granted, messages);
				assert_int_equal(c.at_rest, 0);
				assert_true(c.highest <= larger(window, low + add));
				assert_true(c.largest <= add);
				assert_int_equal(c.grants, (messages - window + add - 1) / add);
			}
}

/* While more is wanted than can be had, the level stays between low and low + add. */
static void test_an_endless_run_swings_between_low_and_low_plus_add(void **state)
{
	(void)state;
	struct credit c = {.window = 50, .low = 20, .add = 70};
	credit_start(&c, UINT64_MAX);
	uint32_t highest = 0;
	for (int i = 0; i < 10000; i++) {
		credit_take(&c);
		assert_true(c.level >= 20);
		credit_grant(&c, UINT64_MAX);
		assert_true(c.level > 20);
		if (c.level > highest)
			highest = c.level;
	}
	assert_int_equal(highest, 90);
}

/* The library's credit is a signed 32-bit number. */
static void test_the_largest_credit_does_not_overflow(void **state)
{
	(void)state;
	struct credit c = {.window = CREDIT_MAX, .low = CREDIT_MAX - 1, .add = 1};
	assert_int_equal(credit_start(&c, UINT64_MAX), CREDIT_MAX);
	credit_take(&c);
	assert_int_equal(credit_grant(&c, UINT64_MAX), 1);
	assert_int_equal(c.level, CREDIT_MAX);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_grants_the_window_but_no_more_than_wanted),
		cmocka_unit_test(test_nothing_is_granted_above_low),
		cmocka_unit_test(test_a_grant_is_no_more_than_wanted),
		cmocka_unit_test(test_grants_of_a_run),
		cmocka_unit_test(test_every_small_setting_keeps_its_bounds),
		cmocka_unit_test(test_an_endless_run_swings_between_low_and_low_plus_add),
		cmocka_unit_test(test_the_largest_credit_does_not_overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
