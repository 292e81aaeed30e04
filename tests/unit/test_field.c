/* field: which type a value is taken for. */
#include "field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct field parse(const char *text)
{
	struct field field;
	assert_null(field_parse(text, &field));
	return field;
}

/* The key is what is before the first '='. */
static void test_key(void **state)
{
	(void)state;
	struct field f = parse("a.b c=d=e=");
	assert_int_equal(f.key_bytes, 5);
	assert_memory_equal(f.key, "a.b c", 5);
	assert_int_equal(f.type, FIELD_TEXT);
	assert_string_equal(f.value.text, "d=e=");
}

/* Neither half of it can be left out, but for the value. */
static void test_what_is_refused(void **state)
{
	(void)state;
	struct field f = {.key_bytes = 42};
	assert_string_equal(field_parse("abc", &f), "is not KEY=VALUE");
	assert_string_equal(field_parse("", &f), "is not KEY=VALUE");
	assert_string_equal(field_parse("=1", &f), "has no key");
	assert_string_equal(field_parse("=", &f), "has no key");
	assert_int_equal(f.key_bytes, 42);
}

/* In any case, as qpid-send takes them. */
static void test_booleans(void **state)
{
	(void)state;
	static const char *const YES[] = {"k=true", "k=True", "k=TRUE"};
	static const char *const NO[] = {"k=false", "k=False", "k=FALSE"};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(parse(YES[i]).type, FIELD_BOOLEAN);
		assert_true(parse(YES[i]).value.boolean);
		assert_int_equal(parse(NO[i]).type, FIELD_BOOLEAN);
		assert_false(parse(NO[i]).value.boolean);
	}
}

/* At both ends of what fits. */
static void test_whole_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t value;
	} SIGNED[] = {{"k=0", 0}, {"k=1", 1}, {"k=-1", -1}, {"k=+5", 5}, {"k=007", 7},
		{"k=9223372036854775807", INT64_MAX}, {"k=-9223372036854775808", INT64_MIN}};
	for (size_t i = 0; i < sizeof SIGNED / sizeof *SIGNED; i++) {
		assert_int_equal(parse(SIGNED[i].text).type, FIELD_SIGNED);
		assert_int_equal(parse(SIGNED[i].text).value.integer, SIGNED[i].value);
	}
	assert_int_equal(parse("k=9223372036854775808").type, FIELD_UNSIGNED);
	assert_int_equal(parse("k=9223372036854775808").value.natural, UINT64_C(1) << 63);
	assert_int_equal(parse("k=18446744073709551615").type, FIELD_UNSIGNED);
	assert_int_equal(parse("k=18446744073709551615").value.natural, UINT64_MAX);
}

/* With a point, or an exponent, or both. */
static void test_decimals(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double value;
	} FLOATING[] = {{"k=1.5", 1.5}, {"k=-0.25", -0.25}, {"k=.5", 0.5}, {"k=2.", 2},
		{"k=1e3", 1000}, {"k=1E-3", 0.001}, {"k=+1.5e+2", 150}};
	for (size_t i = 0; i < sizeof FLOATING / sizeof *FLOATING; i++) {
		assert_int_equal(parse(FLOATING[i].text).type, FIELD_FLOATING);
		assert_true(parse(FLOATING[i].text).value.floating == FLOATING[i].value);
	}
}

/* All else, as it was typed. */
static void test_text(void **state)
{
	(void)state;
	static const char *const TEXTS[] = {"", " ", "x", "yes", "truely", " 1", "1 ", "1,5",
		"0x10", "1e", "e5", ".", "-", "+", "-.", "--1", "1.2.3", "1e5.5", "inf", "nan",
		"1e999", "18446744073709551616", "-9223372036854775809"};
	for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
		char text[64] = "k=";
		strcat(text, TEXTS[i]);
		assert_int_equal(parse(text).type, FIELD_TEXT);
		assert_string_equal(parse(text).value.text, TEXTS[i]);
	}
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_booleans),
		cmocka_unit_test(test_whole_numbers),
		cmocka_unit_test(test_decimals),
		cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
