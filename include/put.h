/* put: values into JSON objects, which are the library's. Layer 2.
 *
 * What is put is the object's; names have their units in them; what does not exist is null.
 */
#ifndef PUT_H
#define PUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A new object whose `event` is KIND. */
json_t *put_event(const char *kind);

/* Writes OBJECT, in ASCII, as a line; it is freed. */
void put_line(FILE *out, json_t *object);

void put_null(json_t *object, const char *name);
void put_number(json_t *object, const char *name, uint64_t value);
void put_number_if(json_t *object, const char *name, bool exists, uint64_t value);
void put_real(json_t *object, const char *name, double value); /* NAN: null */
void put_seconds(json_t *object, const char *name, uint64_t ns);

/* TEXT NULL or empty: null. put_text_value() is of the caller's to put. */
void put_text(json_t *object, const char *name, const char *text);
json_t *put_text_value(const char *text);

/* A time since the epoch, as `time` and as `time_ns`. */
void put_time(json_t *object, int64_t realtime_ns);

#endif
