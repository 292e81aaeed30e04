/* numbering: which sequence a link goes on with. */
#include "numbering.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int start(void **state)
{
	struct numberings *all = malloc(sizeof *all);
	if (!all)
		return -1;
	STAILQ_INIT(all);
	*state = all;
	return 0;
}

static int end(void **state)
{
	numbering_free_all(*state);
	free(*state);
	return 0;
}

static size_t count(const struct numberings *all)
{
	size_t found = 0;
	struct numbering *n;
	STAILQ_FOREACH (n, all, next)
		found++;
	return found;
}

/* Takes it for a link that sees NUMBER, and leaves it. */
static enum sequence_verdict see(struct numberings *all, const char *name, uint64_t number)
{
	struct numbering *n = numbering_take(all, "c", name, 1);
	enum sequence_verdict verdict = sequence_see(&n->sequence, number);
	numbering_leave(all, n);
	return verdict;
}

static void test_a_link_that_comes_back_goes_on(void **state)
{
	assert_int_equal(see(*state, "l", 1), SEQUENCE_IN_ORDER);
	assert_int_equal(see(*state, "l", 2), SEQUENCE_IN_ORDER);
	assert_int_equal(see(*state, "l", 2), SEQUENCE_DUPLICATE);
	assert_int_equal(see(*state, "l", 4), SEQUENCE_GAP);
	assert_int_equal(count(*state), 1);
}

static void test_both_names_count(void **state)
{
	struct numbering *ab = numbering_take(*state, "a", "b", 1);
	struct numbering *a = numbering_take(*state, "a", "", 5);
	struct numbering *b = numbering_take(*state, "", "b", 7);
	assert_ptr_not_equal(ab, a);
	assert_ptr_not_equal(ab, b);
	assert_ptr_not_equal(a, b);
	assert_int_equal(ab->sequence.next, 1);
	assert_int_equal(a->sequence.next, 5);
	assert_int_equal(b->sequence.next, 7);
	numbering_leave(*state, ab);
	numbering_leave(*state, a);
	numbering_leave(*state, b);
}

static void test_one_that_is_over_is_forgotten(void **state)
{
	struct numbering *n = numbering_take(*state, "c", "l", 1);
	sequence_see(&n->sequence, 1);
	n->over = true;
	struct numbering *next = numbering_take(*state, "c", "l", 1);
	assert_ptr_not_equal(next, n);
	assert_int_equal(sequence_see(&next->sequence, 1), SEQUENCE_IN_ORDER);
	numbering_leave(*state, n);
	assert_int_equal(count(*state), 1);
	next->over = true;
	numbering_leave(*state, next);
	assert_int_equal(count(*state), 0);
}

/* The loss of the first has not been noticed yet. */
static void test_two_links_may_share_one(void **state)
{
	struct numbering *first = numbering_take(*state, "c", "l", 1);
	struct numbering *second = numbering_take(*state, "c", "l", 1);
	assert_ptr_equal(first, second);
	assert_int_equal(first->links, 2);
	numbering_leave(*state, first);
	assert_int_equal(second->links, 1);
	assert_int_equal(count(*state), 1);
	numbering_leave(*state, second);
	assert_int_equal(count(*state), 1);
}

static void test_those_left_behind_are_bounded(void **state)
{
	struct numbering *in_use = numbering_take(*state, "c", "in use", 1);
	char name[16];
	for (unsigned i = 0; i < 3 * NUMBERING_IDLE_MAX; i++) {
		snprintf(name, sizeof name, "%u", i);
		see(*state, name, 1);
		see(*state, "0", 1); /* which is thereby never the oldest */
	}
	assert_int_equal(count(*state), NUMBERING_IDLE_MAX + 1);
	assert_int_equal(see(*state, name, 1), SEQUENCE_DUPLICATE);
	assert_int_equal(see(*state, "0", 1), SEQUENCE_DUPLICATE);
	assert_int_equal(see(*state, "1", 1), SEQUENCE_IN_ORDER); /* forgotten, so new */
	numbering_leave(*state, in_use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_link_that_comes_back_goes_on, start, end),
		cmocka_unit_test_setup_teardown(test_both_names_count, start, end),
		cmocka_unit_test_setup_teardown(test_one_that_is_over_is_forgotten, start, end),
		cmocka_unit_test_setup_teardown(test_two_links_may_share_one, start, end),
		cmocka_unit_test_setup_teardown(test_those_left_behind_are_bounded, start, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
