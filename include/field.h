/* field: KEY=VALUE as people type it, for properties and maps. Layer 0.
 *
 * The key ends at the first '='. The value has the type that it looks like: true and false, in
 * capitals too, are booleans; whole numbers are signed if they fit 64 bits, else unsigned; numbers
 * with a point or an exponent are floating; everything else, also what does not fit, is text.
 */
#ifndef FIELD_H
#define FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type { FIELD_BOOLEAN, FIELD_SIGNED, FIELD_UNSIGNED, FIELD_FLOATING, FIELD_TEXT };

struct field {
	const char *key; /* in the text that was parsed */
	size_t key_bytes;
	enum field_type type;
	union {
		bool boolean;
		int64_t integer;
		uint64_t natural;
		double floating;
		const char *text;
	} value;
};

/* Returns NULL, or what is wrong (a constant text) and leaves *FIELD alone. */
const char *field_parse(const char *text, struct field *field);

#endif
