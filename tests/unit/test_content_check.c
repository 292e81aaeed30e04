/* content_check: what was filled is intact, in whatever pieces it is read; anything else is not. */
#include "content_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define HEADER CONTENT_CHECK_HEADER_BYTES

static char *filled(size_t length)
{
	char *body = malloc(length);
	assert_non_null(body);
	content_check_fill(body, length);
	return body;
}

/* Reads BODY in pieces of PIECE bytes. */
static struct content_check read_body(const char *body, size_t length, size_t piece)
{
	struct content_check c;
	content_check_begin(&c);
	for (size_t at = 0; at < length; at += piece)
		content_check_add(&c, body + at, length - at < piece ? length - at : piece);
	return c;
}

static bool is_intact(const char *body, size_t length)
{
	struct content_check c = read_body(body, length, length ? length : 1);
	return content_check_intact(&c);
}

/* Also those that end within, at and behind the header. */
static void test_a_body_read_in_any_pieces_is_intact(void **state)
{
	(void)state;
	static const size_t LENGTHS[] = {HEADER, HEADER + 1, 100, 255, 256, 65536, 100003};
	static const size_t PIECES[] = {1, 7, 15, 16, 17, 64, 4096, 1 << 20};
	for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
		char *body = filled(LENGTHS[i]);
		for (size_t j = 0; j < sizeof PIECES / sizeof *PIECES; j++) {
			struct content_check c = read_body(body, LENGTHS[i], PIECES[j]);
			assert_true(content_check_intact(&c));
		}
		free(body);
	}
}

/* The number is not part of what is checked: it is written anew for each message. */
static void test_the_number_is_read_back(void **state)
{
	(void)state;
	static const uint64_t NUMBERS[] = {0, 1, 255, 256, UINT32_MAX, INT64_MAX, UINT64_MAX};
	char *body = filled(100);
	for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
		content_check_number(body, NUMBERS[i]);
		struct content_check c = read_body(body, 100, 3);
		assert_true(content_check_intact(&c));
		assert_int_equal(content_check_read_number(&c), NUMBERS[i]);
	}
	free(body);
}

/* Each bit of length, CRC and payload counts. */
static void test_a_flipped_bit_is_found(void **state)
{
	(void)state;
	char *body = filled(100);
	for (size_t bit = 8 * 8; bit < 8 * 100; bit++) {
		body[bit / 8] ^= (char)(1 << bit % 8);
		assert_false(is_intact(body, 100));
		body[bit / 8] ^= (char)(1 << bit % 8);
	}
	assert_true(is_intact(body, 100));
	free(body);
}

/* Shorter, down to nothing, or longer. */
static void test_a_wrong_length_is_found(void **state)
{
	(void)state;
	char *body = filled(100);
	for (size_t length = 0; length < 100; length++)
		assert_false(is_intact(body, length));
	body = realloc(body, 101);
	assert_non_null(body);
	body[100] = 0;
	assert_false(is_intact(body, 101));
	free(body);
}

/* As they may come from frames that were lost or mixed up. */
static void test_pieces_that_changed_places_are_found(void **state)
{
	(void)state;
	enum { PIECE = 64, LENGTH = HEADER + 4 * PIECE };
	char *body = filled(LENGTH), *moved = malloc(LENGTH);
	assert_non_null(moved);
	memcpy(moved, body, LENGTH);
	memcpy(moved + HEADER, body + HEADER + PIECE, PIECE);
	memcpy(moved + HEADER + PIECE, body + HEADER, PIECE);
	assert_false(is_intact(moved, LENGTH));
	free(body);
	free(moved);
}

/* "123456789" has the CRC-32 that every description of it gives. */
static void test_layout(void **state)
{
	(void)state;
	static const char BODY[] = "\0\0\0\0\0\0\1\2" /* the number: 258 */
				   "\0\0\0\x19"       /* the length: 25 */
				   "\xcb\xf4\x39\x26" /* the CRC */
				   "123456789";
	struct content_check c = read_body(BODY, sizeof BODY - 1, 4);
	assert_true(content_check_intact(&c));
	assert_int_equal(content_check_read_number(&c), 258);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_body_read_in_any_pieces_is_intact),
		cmocka_unit_test(test_the_number_is_read_back),
		cmocka_unit_test(test_a_flipped_bit_is_found),
		cmocka_unit_test(test_a_wrong_length_is_found),
		cmocka_unit_test(test_pieces_that_changed_places_are_found),
		cmocka_unit_test(test_layout),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
