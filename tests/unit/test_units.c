/* units: what is read as which number, and what is refused. */
#include "units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))
#define UNTOUCHED     UINT64_C(0xdeadbeefcafe)

typedef const char *parse_integer(const char *text, uint64_t *value);
typedef const char *parse_real(const char *text, double *value);

struct accepted {
	const char *text;
	uint64_t value;
};

/* Each is the number beside it. */
static void check_accepted(parse_integer *parse, const struct accepted *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = UNTOUCHED;
		const char *error = parse(rows[i].text, &value);
		if (error)
			fail_msg("\"%s\" %s", rows[i].text, error);
		if (value != rows[i].value)
			fail_msg("\"%s\" is %llu, not %llu", rows[i].text,
				(unsigned long long)rows[i].value, (unsigned long long)value);
	}
}

/* Each is refused with a text, and the value left alone. */
static void check_refused(parse_integer *parse, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = UNTOUCHED;
		const char *error = parse(texts[i], &value);
		if (!error)
			fail_msg("\"%s\" was taken for %llu", texts[i], (unsigned long long)value);
		assert_true(strlen(error) > 0);
		assert_int_equal(value, UNTOUCHED);
	}
}

/* No integer may be any of these, whatever its units. */
static const char *const NEVER[] = {"", "-1", "-0", "--1", "+1", "+", "-", ".", "..", "1..2", "1x",
	"1 k", "1 ", " 1", "\t1", "1\n", "1.2.3", "1e3", "1E3", "0x10", "0b1", "1,5", "1_000",
	"1'000", "k", "ms", "nan", "NaN", "inf", "INFINITY", "-inf", "1kk", "1k5", "1k 5",
	"99999999999999999999", "9223372036854775808", "18446744073709551615",
	"18446744073709551616", "0.00000000000000000001", "1.5kk", "\xd9\xa1", "1\xc2\xb5"};

/* What is left over must not be ignored. */
static void test_no_parser_takes_what_is_not_a_number(void **state)
{
	(void)state;
	check_refused(units_parse_count, NEVER, LENGTH(NEVER));
	check_refused(units_parse_bytes, NEVER, LENGTH(NEVER));
	check_refused(units_parse_duration, NEVER, LENGTH(NEVER));
	check_refused(units_parse_number, NEVER, LENGTH(NEVER));
}

/* Powers of 1000, lower case. */
static void test_counts(void **state)
{
	(void)state;
	static const struct accepted ACCEPTED[] = {{"0", 0}, {"1", 1}, {"007", 7}, {"1k", 1000},
		{"1m", 1000000}, {"1g", 1000000000}, {"1.5k", 1500}, {"0.001k", 1}, {"1.0", 1},
		{"2.5m", 2500000}, {"1.000000001g", 1000000001}, {"0.5g", 500000000},
		{"9223372036854775807", INT64_MAX},
		{"9223372036.854775807g", UINT64_C(9223372036854775807)},
		{"9223372036g", UINT64_C(9223372036000000000)}};
	static const char *const REFUSED[] = {"1K", "1M", "1G", "1Ki", "1Mi", "1s", "1.5",
		"0.0001k", "1.0000000001g", "9223372036.854775808g", "9223372037g",
		"9223372036854775807k"};
	check_accepted(units_parse_count, ACCEPTED, LENGTH(ACCEPTED));
	check_refused(units_parse_count, REFUSED, LENGTH(REFUSED));
}

/* K of 1000 is lower case, of 1024 it has an i. */
static void test_bytes(void **state)
{
	(void)state;
	static const struct accepted ACCEPTED[] = {{"0", 0}, {"100", 100}, {"1k", 1000},
		{"1M", 1000000}, {"1G", 1000000000}, {"1Ki", 1024}, {"1Mi", 1048576},
		{"1Gi", 1073741824}, {"1.5k", 1500}, {"1.5Ki", 1536}, {"0.5Mi", 524288},
		{"0.25Gi", 268435456}, {"8589934591Gi", UINT64_C(9223372035781033984)}};
	static const char *const REFUSED[] = {"1K", "1m", "1g", "1ki", "1KI", "1mi", "1Kib", "1kB",
		"1B", "1KiB", "1.5", "0.3Ki", "8589934592Gi", "17179869184Gi"};
	check_accepted(units_parse_bytes, ACCEPTED, LENGTH(ACCEPTED));
	check_refused(units_parse_bytes, REFUSED, LENGTH(REFUSED));
}

/* A minute is not an m. */
static void test_durations(void **state)
{
	(void)state;
	static const struct accepted ACCEPTED[] = {{"0", 0}, {"1", UINT64_C(1000000000)},
		{"0.5", 500000000}, {"1ns", 1}, {"1us", 1000}, {"0.5us", 500}, {"0.001us", 1},
		{"1ms", 1000000}, {"2.5ms", 2500000}, {"1s", 1000000000}, {"0.000000001s", 1},
		{"1.5min", UINT64_C(90000000000)}, {"1min", UINT64_C(60000000000)},
		{"1h", UINT64_C(3600000000000)}, {"0.5h", UINT64_C(1800000000000)},
		{"2562047h", UINT64_C(9223369200000000000)}};
	static const char *const REFUSED[] = {"0.5ns", "0.0001us", "0.0000000001", "1m", "1M", "1S",
		"1sec", "1hour", "1d", "1Ms", "1 s", "2562048h", "9223372037", "1min30s",
		"0.00000000001min"};
	check_accepted(units_parse_duration, ACCEPTED, LENGTH(ACCEPTED));
	check_refused(units_parse_duration, REFUSED, LENGTH(REFUSED));
}

/* Their unit is fixed: it cannot be given. */
static void test_plain_numbers(void **state)
{
	(void)state;
	static const struct accepted ACCEPTED[] = {
		{"0", 0}, {"5", 5}, {"00", 0}, {"9223372036854775807", INT64_MAX}};
	static const char *const REFUSED[] = {"1k", "1ms", "1s", "0.5", "1.5"};
	check_accepted(units_parse_number, ACCEPTED, LENGTH(ACCEPTED));
	check_refused(units_parse_number, REFUSED, LENGTH(REFUSED));
}

/* As the header says. */
static void test_plain_numbers_are_digits_only(void **state)
{
	(void)state;
	static const char *const REFUSED[] = {"1.0", "1.", "1.000"};
	check_refused(units_parse_number, REFUSED, LENGTH(REFUSED));
}

/* ---- reals ---- */

struct accepted_real {
	const char *text;
	double value;
};

/* The very number that the compiler reads. */
static void check_accepted_real(parse_real *parse, const struct accepted_real *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double value = -1;
		const char *error = parse(rows[i].text, &value);
		if (error)
			fail_msg("\"%s\" %s", rows[i].text, error);
		if (value != rows[i].value)
			fail_msg("\"%s\" is %.17g, not %.17g", rows[i].text, rows[i].value, value);
	}
}

/* As check_refused(). */
static void check_refused_real(parse_real *parse, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double value = -1;
		if (!parse(texts[i], &value))
			fail_msg("\"%s\" was taken for %g", texts[i], value);
		assert_true(value == -1);
	}
}

static const char *const NEVER_REAL[] = {"", "0", "0.0", "000", "-1", "-0.5", "+1", ".", "1x", "1k",
	"1/s", "1 ", " 1", "1e3", "0x1", "1.2.3", "nan", "NaN", "inf", "infinity", "1,5",
	"99999999999999999999", "1%"};

/* No rate is the absence of the option, not 0. */
static void test_rates_are_positive_decimals(void **state)
{
	(void)state;
	static const struct accepted_real ACCEPTED[] = {{"1", 1}, {"0.5", 0.5}, {"0.1", 0.1},
		{"1000000", 1e6}, {"33.3", 33.3}, {"0.000001", 1e-6}, {"007", 7}};
	check_accepted_real(units_parse_rate, ACCEPTED, LENGTH(ACCEPTED));
	check_refused_real(units_parse_rate, NEVER_REAL, LENGTH(NEVER_REAL));
}

/* There is nothing at or below 0 % of the values. */
static void test_percentiles_are_above_0_and_at_most_100(void **state)
{
	(void)state;
	static const struct accepted_real ACCEPTED[] = {{"50", 50}, {"99.9", 99.9},
		{"99.999", 99.999}, {"100", 100}, {"100.0", 100}, {"0.001", 0.001}};
	static const char *const REFUSED[] = {"100.1", "101", "1000", "100.0000001"};
	check_accepted_real(units_parse_percentile, ACCEPTED, LENGTH(ACCEPTED));
	check_refused_real(units_parse_percentile, REFUSED, LENGTH(REFUSED));
	check_refused_real(units_parse_percentile, NEVER_REAL, LENGTH(NEVER_REAL));
}

/* The texts follow a quoted value in error messages. */
static void test_errors_say_what_is_wrong(void **state)
{
	(void)state;
	uint64_t value;
	double real;
	assert_string_equal(units_parse_count("-1", &value), "is negative");
	assert_string_equal(units_parse_count("", &value), "is not a number");
	assert_string_equal(units_parse_count("1x", &value), "has a unit other than k m g");
	assert_string_equal(units_parse_count("1.5", &value), "is not a whole number");
	assert_string_equal(units_parse_count("9223372036854775808", &value), "is too large");
	assert_string_equal(
		units_parse_count("99999999999999999999", &value), "has too many digits");
	assert_string_equal(units_parse_rate("0", &real), "is not positive");
	assert_string_equal(units_parse_rate("5k", &real), "has something after the number");
	assert_string_equal(units_parse_percentile("101", &real), "is above 100");
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_parser_takes_what_is_not_a_number),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_plain_numbers),
		cmocka_unit_test(test_plain_numbers_are_digits_only),
		cmocka_unit_test(test_rates_are_positive_decimals),
		cmocka_unit_test(test_percentiles_are_above_0_and_at_most_100),
		cmocka_unit_test(test_errors_say_what_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
