/* sequence: gaps, late and repeated numbers, against a model that remembers every number. */
#include "mix.h"
#include "sequence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* All three. */
static void assert_counts(
	const struct sequence *s, uint64_t skipped, uint64_t reordered, uint64_t duplicated)
{
	assert_int_equal(s->skipped, skipped);
	assert_int_equal(s->reordered, reordered);
	assert_int_equal(s->duplicated, duplicated);
}

/* Range AT is FIRST .. LAST. */
static void assert_range(const struct sequence *s, uint32_t at, uint64_t first, uint64_t last)
{
	assert_true(at < s->ranges);
	assert_int_equal(s->missing[at].first, first);
	assert_int_equal(s->missing[at].last, last);
}

/* COUNT holes of WIDTH numbers each, with one number seen behind each: the holes start at
 * I * (WIDTH + 1). */
static void make_holes(struct sequence *s, uint64_t count, uint64_t width)
{
	sequence_start(s, 0);
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(sequence_see(s, i * (width + 1) + width), SEQUENCE_GAP);
}

/* And take no memory. */
static void test_numbers_in_order_count_nothing(void **state)
{
	(void)state;
	struct sequence s;
	sequence_start(&s, 1);
	for (uint64_t n = 1; n <= 100000; n++)
		assert_int_equal(sequence_see(&s, n), SEQUENCE_IN_ORDER);
	assert_int_equal(s.next, 100001);
	assert_counts(&s, 0, 0, 0);
	assert_null(s.missing);
	sequence_free(&s);
}

/* What follows it is in order again. */
static void test_a_gap_is_skipped_once(void **state)
{
	(void)state;
	struct sequence s;
	sequence_start(&s, 1);
	assert_int_equal(sequence_see(&s, 1), SEQUENCE_IN_ORDER);
	assert_int_equal(sequence_see(&s, 5), SEQUENCE_GAP);
	assert_int_equal(sequence_see(&s, 6), SEQUENCE_IN_ORDER);
	assert_counts(&s, 3, 0, 0);
	assert_int_equal(s.ranges, 1);
	assert_range(&s, 0, 2, 4);
	sequence_free(&s);
}

/* The first number is known. */
static void test_a_gap_at_the_start_counts(void **state)
{
	(void)state;
	struct sequence s;
	sequence_start(&s, 100);
	assert_int_equal(sequence_see(&s, 103), SEQUENCE_GAP);
	assert_counts(&s, 3, 0, 0);
	assert_range(&s, 0, 100, 102);
	sequence_free(&s);
}

/* A late message must be told from a second copy. */
static void test_a_late_number_is_reordered_and_then_a_duplicate(void **state)
{
	(void)state;
	struct sequence s;
	sequence_start(&s, 1);
	sequence_see(&s, 3);
	assert_int_equal(sequence_see(&s, 2), SEQUENCE_REORDERED);
	assert_int_equal(sequence_see(&s, 2), SEQUENCE_DUPLICATE);
	assert_int_equal(sequence_see(&s, 1), SEQUENCE_REORDERED);
	assert_int_equal(sequence_see(&s, 3), SEQUENCE_DUPLICATE);
	assert_int_equal(sequence_see(&s, 4), SEQUENCE_IN_ORDER);
	assert_counts(&s, 2, 2, 2);
	assert_int_equal(s.ranges, 0);
	sequence_free(&s);
}

/* At both ends and within. */
static void test_late_numbers_shrink_and_split_a_range(void **state)
{
	(void)state;
	struct sequence s;
	sequence_start(&s, 10);
	sequence_see(&s, 20); /* 10..19 are missing */
	sequence_see(&s, 10);
	assert_range(&s, 0, 11, 19);
	sequence_see(&s, 19);
	assert_range(&s, 0, 11, 18);
	sequence_see(&s, 14);
	assert_int_equal(s.ranges, 2);
	assert_range(&s, 0, 11, 13);
	assert_range(&s, 1, 15, 18);
	sequence_see(&s, 12);
	assert_int_equal(s.ranges, 3);
	assert_range(&s, 0, 11, 11);
	assert_range(&s, 1, 13, 13);
	assert_range(&s, 2, 15, 18);
	sequence_see(&s, 13);
	assert_int_equal(s.ranges, 2);
	assert_range(&s, 1, 15, 18);
	assert_counts(&s, 10, 5, 0);
	sequence_free(&s);
}

/* None of it is late. */
static void test_a_whole_stream_twice_is_all_duplicates(void **state)
{
	(void)state;
	struct sequence s;
	sequence_start(&s, 1);
	for (int round = 0; round < 2; round++)
		for (uint64_t n = 1; n <= 1000; n++)
			sequence_see(&s, n);
	assert_counts(&s, 0, 0, 1000);
	sequence_free(&s);
}

/* The bound itself is inside. */
static void test_as_many_holes_as_ranges_are_all_remembered(void **state)
{
	(void)state;
	struct sequence s;
	make_holes(&s, SEQUENCE_RANGES, 1);
	assert_int_equal(s.ranges, SEQUENCE_RANGES);
	for (uint64_t i = 0; i < SEQUENCE_RANGES; i++)
		assert_int_equal(sequence_see(&s, 2 * i), SEQUENCE_REORDERED);
	assert_counts(&s, SEQUENCE_RANGES, SEQUENCE_RANGES, 0);
	assert_int_equal(s.ranges, 0);
	sequence_free(&s);
}

/* Memory is bounded; what is forgotten stays lost. */
static void test_of_more_holes_the_oldest_are_forgotten(void **state)
{
	(void)state;
	struct sequence s;
	const uint64_t extra = 476, holes = SEQUENCE_RANGES + extra;
	make_holes(&s, holes, 1);
	assert_int_equal(s.ranges, SEQUENCE_RANGES);
	for (uint64_t i = 0; i < holes; i++)
		assert_int_equal(sequence_see(&s, 2 * i),
			i < extra ? SEQUENCE_DUPLICATE : SEQUENCE_REORDERED);
	assert_counts(&s, holes, SEQUENCE_RANGES, extra);
	sequence_free(&s);
}

/* A split needs one more range. */
static void test_a_split_with_no_range_left_forgets_the_oldest(void **state)
{
	(void)state;
	struct sequence s;
	make_holes(&s, SEQUENCE_RANGES, 3);
	const uint64_t middle = 4 * 500 + 1;
	assert_int_equal(sequence_see(&s, middle), SEQUENCE_REORDERED);
	assert_int_equal(s.ranges, SEQUENCE_RANGES);
	assert_int_equal(sequence_see(&s, 0), SEQUENCE_DUPLICATE);
	assert_int_equal(sequence_see(&s, 4), SEQUENCE_REORDERED);
	assert_int_equal(sequence_see(&s, middle - 1), SEQUENCE_REORDERED);
	assert_int_equal(sequence_see(&s, middle), SEQUENCE_DUPLICATE);
	assert_int_equal(sequence_see(&s, middle + 1), SEQUENCE_REORDERED);
	assert_counts(&s, 3 * SEQUENCE_RANGES, 4, 2);
	sequence_free(&s);
}

/* The oldest is then the one being split. */
static void test_splitting_the_oldest_forgets_its_lower_half(void **state)
{
	(void)state;
	struct sequence s;
	make_holes(&s, SEQUENCE_RANGES, 3);
	assert_int_equal(sequence_see(&s, 1), SEQUENCE_REORDERED);
	assert_int_equal(s.ranges, SEQUENCE_RANGES);
	assert_range(&s, 0, 2, 2);
	assert_range(&s, 1, 4, 6);
	assert_int_equal(sequence_see(&s, 0), SEQUENCE_DUPLICATE);
	assert_int_equal(sequence_see(&s, 2), SEQUENCE_REORDERED);
	sequence_free(&s);
}

/* The upper half of 64 bits. */
static void test_large_numbers(void **state)
{
	(void)state;
	struct sequence s;
	const uint64_t first = UINT64_C(1) << 63;
	sequence_start(&s, first);
	assert_int_equal(sequence_see(&s, first), SEQUENCE_IN_ORDER);
	assert_int_equal(sequence_see(&s, UINT64_MAX - 1), SEQUENCE_GAP);
	assert_int_equal(s.skipped, UINT64_MAX - 1 - first - 1);
	assert_int_equal(sequence_see(&s, first + 1), SEQUENCE_REORDERED);
	assert_int_equal(sequence_see(&s, UINT64_MAX - 2), SEQUENCE_REORDERED);
	assert_range(&s, 0, first + 2, UINT64_MAX - 3);
	sequence_free(&s);
}

/* ---- against a model ---- */

#define MODEL_NUMBERS 20000

/* Every number there is, and whether it was seen. */
struct model {
	uint64_t next, skipped, reordered, duplicated;
	unsigned char seen[MODEL_NUMBERS];
};

/* By the definitions in the header. */
static enum sequence_verdict model_see(struct model *m, uint64_t number)
{
	if (m->seen[number]) {
		m->duplicated++;
		return SEQUENCE_DUPLICATE;
	}
	m->seen[number] = 1;
	if (number < m->next) {
		m->reordered++;
		return SEQUENCE_REORDERED;
	}
	uint64_t passed = number - m->next;
	m->skipped += passed;
	m->next = number + 1;
	return passed ? SEQUENCE_GAP : SEQUENCE_IN_ORDER;
}

/* How many runs of numbers are missing. */
static uint32_t model_ranges(const struct model *m)
{
	uint32_t ranges = 0;
	for (uint64_t n = 0; n < m->next; n++)
		ranges += !m->seen[n] && (!n || m->seen[n - 1]);
	return ranges;
}

/* Where the next number is, around NEXT: mostly in order, else ahead by up to JUMP or behind by
 * up to BACK. */
static uint64_t next_number(uint64_t *state, uint64_t next, uint64_t jump, uint64_t back)
{
	uint64_t r = mix_next(state) % 10;
	if (r == 0 && jump)
		return next + mix_next(state) % jump;
	if (r <= 4 && next)
		return next - 1 - mix_next(state) % (next < back ? next : back);
	return next;
}

/* One stream, compared at each step, until the numbers or the ranges are used up: from then on the
 * model would know more. */
static void compare_with_model(uint64_t seed, uint64_t jump, uint64_t back)
{
	static struct model m;
	struct sequence s;
	memset(&m, 0, sizeof m);
	sequence_start(&s, 0);
	while (m.next + jump < MODEL_NUMBERS && s.ranges + 1 < SEQUENCE_RANGES) {
		uint64_t number = next_number(&seed, m.next, jump, back);
		assert_int_equal(sequence_see(&s, number), model_see(&m, number));
		assert_int_equal(s.next, m.next);
		assert_counts(&s, m.skipped, m.reordered, m.duplicated);
	}
	assert_true(m.next > 1000 && m.duplicated + m.reordered > 100);
	assert_int_equal(s.ranges, model_ranges(&m));
	for (uint64_t n = 0; n < m.next; n++) /* all that is missing comes late */
		if (!m.seen[n])
			assert_int_equal(sequence_see(&s, n), SEQUENCE_REORDERED);
	assert_int_equal(s.skipped, s.reordered);
	assert_int_equal(s.ranges, 0);
	sequence_free(&s);
}

/* Short and long jumps, near and far ones behind, and none missing. */
static void test_random_streams_agree_with_the_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		compare_with_model(seed, 2, 10);
		compare_with_model(seed, 30, 100);
		compare_with_model(seed, 500, 3000);
		compare_with_model(seed, 0, 50);
	}
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_in_order_count_nothing),
		cmocka_unit_test(test_a_gap_is_skipped_once),
		cmocka_unit_test(test_a_gap_at_the_start_counts),
		cmocka_unit_test(test_a_late_number_is_reordered_and_then_a_duplicate),
		cmocka_unit_test(test_late_numbers_shrink_and_split_a_range),
		cmocka_unit_test(test_a_whole_stream_twice_is_all_duplicates),
		cmocka_unit_test(test_as_many_holes_as_ranges_are_all_remembered),
		cmocka_unit_test(test_of_more_holes_the_oldest_are_forgotten),
		cmocka_unit_test(test_a_split_with_no_range_left_forgets_the_oldest),
		cmocka_unit_test(test_splitting_the_oldest_forgets_its_lower_half),
		cmocka_unit_test(test_large_numbers),
		cmocka_unit_test(test_random_streams_agree_with_the_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
