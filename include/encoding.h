/* encoding: AMQP 1.0's values, read where they stand. Layer 0.
 *
 * AMQP 1.0 part 1, section 1.6. Nothing is copied, nothing calls itself, and nothing beyond the end
 * is looked at. The library's own decoder makes a tree of at most 65,535 nodes, calls itself for
 * each level, and takes quadratic time to print a large map.
 */
#ifndef ENCODING_H
#define ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum encoding_kind {
	ENCODING_NULL,
	ENCODING_BOOLEAN,
	ENCODING_UNSIGNED, /* of any width */
	ENCODING_SIGNED,   /* of any width, extended to 64 bits */
	ENCODING_FLOAT,
	ENCODING_DOUBLE,
	ENCODING_DECIMAL, /* of any width */
	ENCODING_CHAR,
	ENCODING_TIMESTAMP, /* ms since the epoch, signed */
	ENCODING_UUID,
	ENCODING_BINARY,
	ENCODING_STRING,
	ENCODING_SYMBOL,
	ENCODING_LIST,
	ENCODING_MAP,
	ENCODING_ARRAY,
	ENCODING_DESCRIBED, /* its descriptor and its value follow, to be read one by one */
};

struct encoding_value {
	enum encoding_kind kind;
	uint64_t number;   /* of numbers, characters and booleans; the bits of floating ones */
	const char *bytes; /* of what has a length, decimals and UUIDs; of lists, maps and arrays
			      what they hold */
	size_t length;
	uint32_t count;        /* of what lists, maps and arrays say they hold */
	unsigned char element; /* an array's format code */
};

/* What is still to be read. */
struct encoding_cursor {
	const char *at, *end;
};

/* Reads the next value. False, and nothing more is to be read, at the end and at what is not a
 * value. */
bool encoding_read(struct encoding_cursor *c, struct encoding_value *v);

/* The same where the format code is not in front of it, as in an array. */
bool encoding_read_as(struct encoding_cursor *c, unsigned char code, struct encoding_value *v);

/* A cursor over what V, a list, a map or an array, holds. */
static inline struct encoding_cursor encoding_enter(const struct encoding_value *v)
{
	return (struct encoding_cursor){v->bytes, v->bytes + v->length};
}

/* Reads a described value whose descriptor is a number, such as a section of a message. */
bool encoding_read_section(
	struct encoding_cursor *c, uint64_t *descriptor, struct encoding_value *v);

#endif
