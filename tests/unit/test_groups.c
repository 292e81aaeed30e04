/* groups: which group each message is put into. */
#include "groups.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The next message is the FILLED-th of group NUMBER. */
static void assert_next(
	struct groups *g, struct groups_plan *plan, uint64_t number, uint64_t filled)
{
	struct group group = groups_next(g, plan);
	assert_int_equal(group.number, number);
	assert_int_equal(group.filled, filled);
}

/* One after the other. */
static void test_a_full_group_is_followed_by_the_next(void **state)
{
	(void)state;
	struct groups_plan plan = {.size = 3, .interleave = 1};
	struct groups g = {0};
	for (uint64_t number = 0; number < 100; number++)
		for (uint64_t filled = 1; filled <= 3; filled++)
			assert_next(&g, &plan, number, filled);
	groups_free(&g);
	plan = (struct groups_plan){.size = 1, .interleave = 1};
	for (uint64_t number = 0; number < 100; number++)
		assert_next(&g, &plan, number, 1);
	groups_free(&g);
}

/* Four groups with two messages each, then four others. */
static void test_interleaved_groups_take_turns(void **state)
{
	(void)state;
	struct groups_plan plan = {.size = 2, .interleave = 4};
	struct groups g = {0};
	for (uint64_t round = 0; round < 10; round++)
		for (uint64_t filled = 1; filled <= 2; filled++)
			for (uint64_t number = 0; number < 4; number++)
				assert_next(&g, &plan, 4 * round + number, filled);
	groups_free(&g);
}

/* Sizes are all there are from 1 on, about as often, and the same each time. */
static void test_random_sizes(void **state)
{
	(void)state;
	enum { SIZE = 10, GROUPS = 10000 };
	unsigned sizes[2][GROUPS] = {{0}}, found[SIZE + 1] = {0};
	for (int run = 0; run < 2; run++) {
		struct groups_plan plan = {.size = SIZE, .randomize = true, .interleave = 1};
		struct groups g = {0};
		struct group group;
		while ((group = groups_next(&g, &plan)).number < GROUPS)
			sizes[run][group.number] = (unsigned)group.filled;
		groups_free(&g);
	}
	for (int i = 0; i < GROUPS; i++) {
		assert_int_equal(sizes[0][i], sizes[1][i]);
		assert_true(sizes[0][i] >= 1 && sizes[0][i] <= SIZE);
		found[sizes[0][i]]++;
	}
	for (int size = 1; size <= SIZE; size++)
		assert_true(found[size] > GROUPS / SIZE * 8 / 10
			&& found[size] < GROUPS / SIZE * 12 / 10);
}

/* Each has groups of its own, whose numbers no other has. */
static void test_links_share_the_numbers_only(void **state)
{
	(void)state;
	struct groups_plan plan = {.size = 2, .interleave = 1};
	struct groups a = {0}, b = {0};
	assert_next(&a, &plan, 0, 1);
	assert_next(&b, &plan, 1, 1);
	assert_next(&b, &plan, 1, 2);
	assert_next(&a, &plan, 0, 2);
	assert_next(&a, &plan, 3, 1);
	assert_next(&b, &plan, 2, 1);
	groups_free(&a);
	groups_free(&b);
}

/* All of them. */
/* As if each third message had been tried twice. */
static void test_what_was_not_sent_is_taken_back(void **state)
{
	(void)state;
	struct groups_plan plan = {.size = 3, .interleave = 2, .randomize = true}, again = plan;
	struct groups g = {0}, tried = {0};
	for (int i = 0; i < 1000; i++) {
		struct group group = groups_next(&g, &plan);
		if (i % 3 == 0) {
			groups_next(&tried, &again);
			groups_back(&tried, &again);
		}
		assert_next(&tried, &again, group.number, group.filled);
	}
	groups_free(&g);
	groups_free(&tried);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_full_group_is_followed_by_the_next),
		cmocka_unit_test(test_interleaved_groups_take_turns),
		cmocka_unit_test(test_random_sizes),
		cmocka_unit_test(test_links_share_the_numbers_only),
		cmocka_unit_test(test_what_was_not_sent_is_taken_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
