/* kept: what was put is found until it is dropped, in whatever order. */
#include "kept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The message that these tests put for NUMBER. */
static size_t text_of(char text[32], uint64_t number)
{
	return (size_t)snprintf(text, 32, "message %llu", (unsigned long long)number);
}

static void put(struct kept *k, uint64_t number)
{
	char text[32];
	size_t length = text_of(text, number);
	kept_put(k, number, (struct kept_message){text, length, (int64_t)number + 5});
}

static void assert_kept(const struct kept *k, uint64_t number)
{
	char text[32];
	size_t length = text_of(text, number);
	struct kept_message found = kept_find(k, number);
	assert_non_null(found.bytes);
	assert_int_equal(found.length, length);
	assert_memory_equal(found.bytes, text, length);
	assert_int_equal(found.sent_ns, (int64_t)number + 5);
}

static void assert_not_kept(const struct kept *k, uint64_t number)
{
	assert_null(kept_find(k, number).bytes);
}

/* Nothing, and an empty message, which is something. */
static void test_nothing_is_kept_at_first(void **state)
{
	(void)state;
	struct kept k = {0};
	assert_not_kept(&k, 0);
	assert_not_kept(&k, 1);
	kept_drop(&k, 1);
	kept_put(&k, 7, (struct kept_message){"", 0, 0});
	assert_non_null(kept_find(&k, 7).bytes);
	assert_int_equal(kept_find(&k, 7).length, 0);
	kept_free(&k);
	assert_not_kept(&k, 7);
}

/* However many, and from whatever number on. */
static void test_many_are_found(void **state)
{
	(void)state;
	static const uint64_t FIRST[] = {0, 1, 63, 1000, UINT64_MAX - 500};
	for (size_t i = 0; i < sizeof FIRST / sizeof *FIRST; i++) {
		struct kept k = {0};
		for (uint64_t n = 0; n < 1000; n++)
			put(&k, FIRST[i] + n);
		for (uint64_t n = 0; n < 1000; n++)
			assert_kept(&k, FIRST[i] + n);
		assert_not_kept(&k, FIRST[i] - 1);
		assert_not_kept(&k, FIRST[i] + 1000);
		kept_free(&k);
	}
}

/* A window that moves on for ever needs no more memory than its width. */
static void test_a_moving_window_does_not_grow(void **state)
{
	(void)state;
	struct kept k = {0};
	for (uint64_t n = 1; n < 100000; n++) {
		put(&k, n);
		if (n > 50) {
			assert_kept(&k, n - 50);
			kept_drop(&k, n - 50);
			assert_not_kept(&k, n - 50);
		}
	}
	assert_int_equal(k.capacity, 64);
	assert_int_equal(k.next - k.first, 50);
	kept_free(&k);
}

/* The oldest one holds the room of the others, and gives it back with its own. */
static void test_messages_may_be_dropped_in_any_order(void **state)
{
	(void)state;
	struct kept k = {0};
	for (uint64_t n = 10; n < 110; n++)
		put(&k, n);
	for (uint64_t n = 109; n > 10; n--) {
		kept_drop(&k, n);
		kept_drop(&k, n);
		assert_not_kept(&k, n);
		assert_kept(&k, 10);
	}
	assert_int_equal(k.next - k.first, 100);
	kept_drop(&k, 10);
	assert_int_equal(k.next - k.first, 0);
	put(&k, 5000); /* an empty one may begin anywhere */
	assert_kept(&k, 5000);
	kept_free(&k);
}

/* A number that has no message takes a place, between others and behind them. */
static void test_numbers_may_be_skipped(void **state)
{
	(void)state;
	struct kept k = {0};
	kept_skip(&k, 3); /* nothing before it */
	assert_int_equal(k.next - k.first, 0);
	for (uint64_t n = 4; n < 1004; n += 2) {
		put(&k, n);
		kept_skip(&k, n + 1);
	}
	for (uint64_t n = 4; n < 1004; n += 2) {
		assert_kept(&k, n);
		assert_not_kept(&k, n + 1);
	}
	for (uint64_t n = 4; n < 1004; n += 2)
		kept_drop(&k, n);
	assert_int_equal(k.next - k.first, 0);
	put(&k, 1004);
	assert_kept(&k, 1004);
	kept_free(&k);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_kept_at_first),
		cmocka_unit_test(test_many_are_found),
		cmocka_unit_test(test_a_moving_window_does_not_grow),
		cmocka_unit_test(test_messages_may_be_dropped_in_any_order),
		cmocka_unit_test(test_numbers_may_be_skipped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
