/* Feeds any text to the parsers of numbers. What they accept must agree with each other, and what
 * they refuse must leave the value alone. */
#include "units.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define UNTOUCHED UINT64_C(0xdeadbeefcafef00d)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef const char *parse_integer(const char *text, uint64_t *value);
typedef const char *parse_real(const char *text, double *value);

/* Ends the run, which libFuzzer reports with the input. */
static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Returns whether TEXT is accepted. */
static bool try_integer(parse_integer *parse, const char *text, uint64_t *value)
{
	*value = UNTOUCHED;
	const char *error = parse(text, value);
	require(error ? *error && *value == UNTOUCHED : *value <= INT64_MAX);
	return !error;
}

/* As try_integer(). */
static bool try_real(parse_real *parse, const char *text, double *value)
{
	*value = -1;
	const char *error = parse(text, value);
	require(error ? *error && *value == -1 : *value > 0 && *value < 1.9e19);
	return !error;
}

/* What holds between the parsers. */
static void check_text(const char *text)
{
	uint64_t count, bytes, number, duration_ns;
	double rate, percent;
	bool has_count = try_integer(units_parse_count, text, &count);
	bool has_bytes = try_integer(units_parse_bytes, text, &bytes);
	bool has_number = try_integer(units_parse_number, text, &number);
	bool has_duration = try_integer(units_parse_duration, text, &duration_ns);
	bool has_rate = try_real(units_parse_rate, text, &rate);
	if (has_number) { /* without a unit it is the same everywhere */
		require(has_count && count == number);
		require(has_bytes && bytes == number);
		require(!has_duration || duration_ns / 1000000000 == number);
		require(has_rate == (number > 0));
		require(!has_rate || rate == (double)number);
	}
	if (has_count || has_bytes || has_duration)
		require((*text >= '0' && *text <= '9') || *text == '.');
	if (try_real(units_parse_percentile, text, &percent))
		require(percent <= 100 && has_rate && percent == rate);
}

/* The whole input is one text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	check_text(text);
	free(text);
	return 0;
}
