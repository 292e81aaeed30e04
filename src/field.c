#define _GNU_SOURCE
#include "field.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"

/* Digits with a sign at most. */
static bool is_whole(const char *text)
{
	text += *text == '-' || *text == '+';
	return *text && !text[strspn(text, DIGITS)];
}

/* The same, with a fraction, an exponent, or both. */
static bool is_decimal(const char *text)
{
	text += *text == '-' || *text == '+';
	size_t before = strspn(text, DIGITS), after = 0;
	text += before;
	if (*text == '.') {
		after = strspn(text + 1, DIGITS);
		text += 1 + after;
	}
	if (*text == 'e' || *text == 'E')
		return before + after && is_whole(text + 1);
	return before + after && !*text;
}

static bool parse_whole(const char *text, struct field *field)
{
	if (!is_whole(text))
		return false;
	errno = 0;
	field->type = FIELD_SIGNED;
	field->value.integer = strtoll(text, NULL, 10);
	if (!errno)
		return true;
	errno = 0;
	field->type = FIELD_UNSIGNED;
	field->value.natural = strtoull(text, NULL, 10);
	return !errno && *text != '-';
}

static bool parse_decimal(const char *text, struct field *field)
{
	if (is_whole(text) || !is_decimal(text))
		return false;
	field->type = FIELD_FLOATING;
	field->value.floating = strtod(text, NULL);
	return isfinite(field->value.floating);
}

static bool parse_boolean(const char *text, struct field *field)
{
	field->type = FIELD_BOOLEAN;
	field->value.boolean = !strcasecmp(text, "true");
	return field->value.boolean || !strcasecmp(text, "false");
}

/* The first type that fits. */
const char *field_parse(const char *text, struct field *field)
{
	const char *equals = strchr(text, '=');
	if (!equals)
		return "is not KEY=VALUE";
	if (equals == text)
		return "has no key";
	field->key = text;
	field->key_bytes = (size_t)(equals - text);
	const char *value = equals + 1;
	if (!parse_whole(value, field) && !parse_decimal(value, field)
		&& !parse_boolean(value, field)) {
		field->type = FIELD_TEXT;
		field->value.text = value;
	}
	return NULL;
}
