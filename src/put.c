#include "put.h"

#include "clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A line, whatever it has in it. */
void put_line(FILE *out, json_t *object)
{
	json_dumpf(object, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
	fputc('\n', out);
	json_decref(object);
}

/* Its kind comes first. */
json_t *put_event(const char *kind)
{
	json_t *object = json_object();
	json_object_set_new(object, "event", json_string(kind));
	return object;
}

/* Counters are below 2^63. */
void put_number(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

/* There is no such number. */
void put_null(json_t *object, const char *name)
{
	json_object_set_new(object, name, json_null());
}

/* NAN becomes null. */
void put_real(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name, isnan(value) ? json_null() : json_real(value));
}

/* A number that does not exist is null. */
void put_number_if(json_t *object, const char *name, bool exists, uint64_t value)
{
	if (exists)
		put_number(object, name, value);
	else
		put_null(object, name);
}

/* From ns. */
void put_seconds(json_t *object, const char *name, uint64_t ns)
{
	put_real(object, name, (double)ns / NS_PER_S);
}

/* Bytes that are not UTF-8 would be refused by the library: they become "?". */
json_t *put_text_value(const char *text)
{
	json_t *string = text && *text ? json_string(text) : json_null();
	if (!string) {
		char *ascii = strdup(text);
		for (char *c = ascii; *c; c++)
			if (*c & 0x80)
				*c = '?';
		string = json_string(ascii);
		free(ascii);
	}
	return string;
}

/* Or null. */
void put_text(json_t *object, const char *name, const char *text)
{
	json_object_set_new(object, name, put_text_value(text));
}

/* For people and for programs. */
void put_time(json_t *object, int64_t realtime_ns)
{
	char utc[CLOCK_UTC_SIZE];
	clock_format_utc(realtime_ns, utc);
	put_text(object, "time", utc);
	put_number(object, "time_ns", (uint64_t)realtime_ns);
}
