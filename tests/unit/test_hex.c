/* hex: digits of a fixed width, there and back. */
#include "hex.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* As printf() has it. */
static void assert_digits(uint64_t value)
{
	char expected[HEX_DIGITS + 1], got[HEX_DIGITS + 1] = "................";
	uint64_t back;
	snprintf(expected, sizeof expected, "%016" PRIx64, value);
	hex_store(got, value);
	assert_string_equal(got, expected);
	assert_true(hex_load(got, &back));
	assert_true(back == value);
}

static void test_numbers(void **state)
{
	(void)state;
	uint64_t value = 1;
	for (int i = 0; i < 64; i++) {
		assert_digits(UINT64_C(1) << i);
		assert_digits((UINT64_C(1) << i) - 1);
		assert_digits(UINT64_C(0x1111111111111111) * (unsigned)(i % 16));
	}
	for (int i = 0; i < 10000; i++) {
		value = value * UINT64_C(6364136223846793005) + 1442695040888963407u;
		assert_digits(value);
	}
	assert_digits(UINT64_MAX);
}

/* Wherever it stands. */
static void test_what_is_no_digit_is_refused(void **state)
{
	(void)state;
	for (size_t at = 0; at < HEX_DIGITS; at++)
		for (int c = -128; c < 128; c++) {
			char text[HEX_DIGITS + 1] = "0123456789abcdef";
			uint64_t value;
			text[at] = (char)c;
			bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
			assert_int_equal(hex_load(text, &value), digit);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_what_is_no_digit_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
