#include "units.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit COUNT_UNITS[] = {
	{"", 1}, {"k", 1000}, {"m", 1000000}, {"g", 1000000000}, {NULL, 0}};
static const struct unit NO_UNITS[] = {{"", 1}, {NULL, 0}};
static const struct unit BYTE_UNITS[] = {{"", 1}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000},
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {NULL, 0}};
static const struct unit TIME_UNITS[] = {{"", 1000000000}, {"ns", 1}, {"us", 1000}, {"ms", 1000000},
	{"s", 1000000000}, {"min", 60000000000}, {"h", 3600000000000}, {NULL, 0}};

/* The digits of a number, before its unit: digits / divisor, exactly. */
struct decimal {
	uint64_t digits;
	uint64_t divisor;
};

/* Reads digits[.digits] and returns what follows it, or NULL with *ERROR set. */
static const char *read_decimal(const char *text, struct decimal *number, const char **error)
{
	bool fraction = false, any = false;
	*number = (struct decimal){0, 1};
	if (*text == '-') {
		*error = "is negative";
		return NULL;
	}
	for (; isdigit((unsigned char)*text) || (*text == '.' && !fraction); text++) {
		if (*text == '.') {
			fraction = true;
			continue;
		}
		any = true;
		if (__builtin_mul_overflow(number->digits, 10, &number->digits)
			|| __builtin_add_overflow(number->digits, *text - '0', &number->digits)
			|| (fraction
				&& __builtin_mul_overflow(number->divisor, 10, &number->divisor))) {
			*error = "has too many digits";
			return NULL;
		}
	}
	if (!any) {
		*error = "is not a number";
		return NULL;
	}
	return text;
}

static const char *parse(
	const char *text, const struct unit *units, const char *unknown, uint64_t *value)
{
	const char *error = NULL;
	struct decimal number;
	const char *rest = read_decimal(text, &number, &error);
	if (!rest)
		return error;
	while (units->name && strcmp(units->name, rest))
		units++;
	if (!units->name)
		return unknown;
	unsigned __int128 scaled = (unsigned __int128)number.digits * units->factor;
	if (scaled % number.divisor)
		return "is not a whole number";
	scaled /= number.divisor;
	if (scaled > INT64_MAX)
		return "is too large";
	*value = (uint64_t)scaled;
	return NULL;
}

/* A count of things. */
const char *units_parse_count(const char *text, uint64_t *value)
{
	return parse(text, COUNT_UNITS, "has a unit other than k m g", value);
}

/* A number of bytes. */
const char *units_parse_bytes(const char *text, uint64_t *value)
{
	return parse(text, BYTE_UNITS, "has a unit other than k M G Ki Mi Gi", value);
}

/* A duration, in nanoseconds. */
const char *units_parse_duration(const char *text, uint64_t *value)
{
	return parse(text, TIME_UNITS, "has a unit other than ns us ms s min h", value);
}

/* A number whose unit is fixed. */
const char *units_parse_number(const char *text, uint64_t *value)
{
	return strchr(text, '.') ? "is not a whole number"
				 : parse(text, NO_UNITS, "has something after the number", value);
}

static const char *parse_positive(const char *text, double *value)
{
	const char *error = NULL;
	struct decimal number;
	const char *rest = read_decimal(text, &number, &error);
	if (!rest)
		return error;
	if (*rest)
		return "has something after the number";
	if (!number.digits)
		return "is not positive";
	*value = (double)number.digits / (double)number.divisor;
	return NULL;
}

/* Events per second. */
const char *units_parse_rate(const char *text, double *value_per_s)
{
	return parse_positive(text, value_per_s);
}

/* A percentile. */
const char *units_parse_percentile(const char *text, double *percent)
{
	double value = 0;
	const char *error = parse_positive(text, &value);
	if (error)
		return error;
	if (value > 100)
		return "is above 100";
	*percent = value;
	return NULL;
}
