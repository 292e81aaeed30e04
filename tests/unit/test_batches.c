/* batches: the first and the last of each to be settled, in whatever order. */
#include "batches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define FIRST 100

static struct batches create(uint64_t size)
{
	struct batches b;
	batches_create(&b, size, FIRST);
	return b;
}

/* Sends COUNT messages from number SN on; the batch of number N begins at 1000 x N. */
static void send(struct batches *b, uint64_t sn, uint64_t count)
{
	for (; count--; sn++)
		if (batches_is_new(b, sn))
			batches_begin(b, (int64_t)(1000 * sn), sn);
}

static void assert_settles(struct batches *b, uint64_t sn, unsigned expected)
{
	struct batch batch;
	assert_int_equal(batches_settle(b, sn, &batch), expected);
	uint64_t first = FIRST + (sn - FIRST) / b->size * b->size;
	if (expected) {
		assert_int_equal(batch.began_ns, 1000 * first);
		assert_int_equal(batch.began_ticks, first);
	}
}

static void test_first_and_last(void **state)
{
	(void)state;
	struct batches b = create(3);
	send(&b, FIRST, 3);
	assert_settles(&b, FIRST, BATCHES_FIRST);
	assert_settles(&b, FIRST + 1, 0);
	assert_settles(&b, FIRST + 2, BATCHES_LAST);
	assert_int_equal(b.oldest, b.end);
	batches_free(&b);
}

static void test_one_message_is_both(void **state)
{
	(void)state;
	struct batches b = create(1);
	send(&b, FIRST, 2);
	assert_settles(&b, FIRST, BATCHES_FIRST | BATCHES_LAST);
	assert_settles(&b, FIRST + 1, BATCHES_FIRST | BATCHES_LAST);
	batches_free(&b);
}

/* A peer may settle in any order, across batches. */
static void test_any_order(void **state)
{
	(void)state;
	struct batches b = create(2);
	send(&b, FIRST, 6);
	assert_settles(&b, FIRST + 5, BATCHES_FIRST);
	assert_settles(&b, FIRST + 3, BATCHES_FIRST);
	assert_settles(&b, FIRST + 2, BATCHES_LAST);
	assert_int_equal(b.oldest, 0);
	assert_settles(&b, FIRST + 1, BATCHES_FIRST);
	assert_settles(&b, FIRST, BATCHES_LAST);
	assert_int_equal(b.oldest, 2);
	assert_settles(&b, FIRST + 4, BATCHES_LAST);
	assert_int_equal(b.oldest, 3);
	batches_free(&b);
}

/* More than fit at first, with old ones still there. */
static void test_many_under_way(void **state)
{
	(void)state;
	enum { BATCHES = 10000 };
	struct batches b = create(2);
	send(&b, FIRST, 20);
	for (uint64_t i = 0; i < 18; i++)
		assert_settles(&b, FIRST + i, i % 2 ? BATCHES_LAST : BATCHES_FIRST);
	send(&b, FIRST + 20, 2 * BATCHES - 20);
	assert_int_equal(b.end - b.oldest, BATCHES - 9);
	for (uint64_t i = 18; i < 2 * BATCHES; i++)
		assert_settles(&b, FIRST + i, i % 2 ? BATCHES_LAST : BATCHES_FIRST);
	assert_int_equal(b.oldest, BATCHES);
	batches_free(&b);
}

/* Of eos messages, say. */
static void test_other_numbers_are_passed_over(void **state)
{
	(void)state;
	struct batches b = create(2);
	assert_settles(&b, FIRST, 0);
	send(&b, FIRST, 2);
	assert_settles(&b, FIRST + 2, 0);
	assert_settles(&b, FIRST - 1, 0);
	assert_settles(&b, FIRST, BATCHES_FIRST);
	assert_settles(&b, FIRST + 1, BATCHES_LAST);
	assert_settles(&b, FIRST, 0);
	batches_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_and_last),
		cmocka_unit_test(test_one_message_is_both),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_many_under_way),
		cmocka_unit_test(test_other_numbers_are_passed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
