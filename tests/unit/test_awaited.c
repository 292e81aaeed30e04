/* awaited: what was added is found until it is removed, in whatever order. */
#include "awaited.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NUMBERS 3000

static void assert_awaited(const struct awaited *a, uint64_t number)
{
	const struct awaited_message *m = awaited_find(a, number);
	assert_non_null(m);
	assert_true(m->number == number && m->since_ns == (int64_t)number + 5);
}

static void add(struct awaited *a, uint64_t number)
{
	awaited_add(a, number, (int64_t)number + 5, false);
}

static void take(struct awaited *a, uint64_t number)
{
	assert_awaited(a, number);
	awaited_remove(a, awaited_find(a, number));
	assert_null(awaited_find(a, number));
}

/* Before there is a table, and after. */
static void test_nothing(void **state)
{
	(void)state;
	struct awaited a = {0};
	assert_null(awaited_find(&a, 0));
	awaited_give_up(&a, 10);
	add(&a, 0);
	assert_awaited(&a, 0);
	assert_null(awaited_find(&a, 1));
	take(&a, 0);
	awaited_free(&a);
	assert_null(awaited_find(&a, 0));
}

/* In the order in which they came, a few at a time, for long; one of them stays. */
static void test_a_moving_window(void **state)
{
	(void)state;
	static const uint64_t FIRST[] = {1, 1000, UINT64_MAX - 50000};
	for (size_t f = 0; f < 3; f++) {
		struct awaited a = {0};
		uint64_t first = FIRST[f];
		add(&a, first);
		for (uint64_t i = 1; i < 100000; i++) {
			add(&a, first + i);
			if (i > 100)
				take(&a, first + i - 100);
		}
		assert_awaited(&a, first);
		assert_int_equal(a.count, 101);
		assert_int_equal(a.depth, 101);
		assert_true(a.capacity <= 512);
		awaited_free(&a);
	}
}

/* In an order of chance, among numbers of chance. */
static void test_any_order(void **state)
{
	(void)state;
	struct awaited a = {0};
	static uint64_t numbers[NUMBERS];
	srand(1);
	for (size_t i = 0; i < NUMBERS; i++) {
		numbers[i] = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^ i;
		add(&a, numbers[i]);
	}
	for (size_t left = NUMBERS; left; left--) {
		size_t i = (size_t)rand() % left;
		take(&a, numbers[i]);
		numbers[i] = numbers[left - 1];
		if (left % 100 == 0)
			for (size_t j = 0; j < left - 1; j++)
				assert_awaited(&a, numbers[j]);
	}
	assert_int_equal(a.count, 0);
	assert_int_equal(a.depth, 0);
	awaited_free(&a);
}

/* What is settled and unanswered is still found, and does not count. */
static void test_give_up(void **state)
{
	(void)state;
	struct awaited a = {0};
	awaited_add(&a, 1, 6, true);
	awaited_add(&a, 2, 7, false);
	awaited_add(&a, 3, 8, true);
	awaited_give_up(&a, 10);
	awaited_give_up(&a, 10);
	assert_int_equal(a.count, 3);
	assert_int_equal(a.depth, 1);
	take(&a, 1);
	assert_int_equal(a.depth, 1);
	take(&a, 2);
	assert_int_equal(a.depth, 0);
	take(&a, 3);
	assert_int_equal(a.count, 0);
	awaited_free(&a);
}

/* Settled messages with the numbers FIRST to LAST are added. */
static void add_settled(struct awaited *a, uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number <= last; number++)
		awaited_add(a, number, (int64_t)number + 5, true);
}

/* How many of FIRST to LAST are there. */
static unsigned count(const struct awaited *a, uint64_t first, uint64_t last)
{
	unsigned found = 0;
	for (uint64_t number = first; number <= last; number++)
		found += awaited_find(a, number) != NULL;
	return found;
}

/* All that a loss gives up is left, and of earlier ones as many as there is room for. */
static void test_the_last_loss_is_kept(void **state)
{
	(void)state;
	struct awaited a = {0};
	add_settled(&a, 1, 4);
	awaited_give_up(&a, 5);
	add_settled(&a, 5, 7);
	awaited_give_up(&a, 5);
	assert_int_equal(count(&a, 5, 7), 3);
	assert_int_equal(count(&a, 1, 4), 2);
	add_settled(&a, 8, 12);
	awaited_give_up(&a, 5);
	assert_int_equal(count(&a, 8, 12), 5);
	assert_int_equal(a.count, 5);
	awaited_give_up(&a, 0);
	assert_int_equal(a.count, 0);
	awaited_free(&a);
}

/* A message that was sent again has a low number, and is of the last loss. */
static void test_one_that_was_sent_again_is_kept(void **state)
{
	(void)state;
	struct awaited a = {0};
	add(&a, 1);
	add_settled(&a, 2, 5);
	awaited_give_up(&a, 5);
	assert_int_equal(a.depth, 1);
	awaited_find(&a, 1)->settled = true;
	add_settled(&a, 6, 9);
	awaited_give_up(&a, 5);
	assert_int_equal(a.depth, 0);
	assert_awaited(&a, 1);
	assert_int_equal(count(&a, 6, 9), 4);
	assert_int_equal(count(&a, 2, 5), 0);
	awaited_free(&a);
}

/* Any number of losses takes no more memory than a few; what is not settled stays. */
static void test_give_up_again_and_again(void **state)
{
	(void)state;
	enum { LOSSES = 1000, EACH = 20, KEPT = 30 };
	struct awaited a = {0};
	uint64_t unsettled = UINT64_C(1) << 63, last = unsettled;
	add(&a, unsettled);
	for (unsigned loss = 1; loss <= LOSSES; loss++) {
		add_settled(&a, last + 1, last + EACH);
		last += EACH;
		assert_int_equal(a.depth, 1 + EACH);
		awaited_give_up(&a, KEPT);
		assert_int_equal(a.depth, 1);
		assert_int_equal(a.count, 1 + (loss == 1 ? EACH : KEPT));
		assert_int_equal(count(&a, last - EACH + 1, last), EACH);
		assert_awaited(&a, unsettled);
	}
	assert_true(a.capacity <= 4 * (1 + KEPT + EACH));
	awaited_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_a_moving_window),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_give_up),
		cmocka_unit_test(test_the_last_loss_is_kept),
		cmocka_unit_test(test_one_that_was_sent_again_is_kept),
		cmocka_unit_test(test_give_up_again_and_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
