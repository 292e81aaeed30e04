#include "content_check.h"

#include <string.h>
#include <zlib.h>

#define LENGTH_AT 8 /* and the CRC in the four bytes behind it */

/* The length and the CRC as one number. */
static uint64_t join(uint64_t length, uint32_t crc)
{
	return length << 32 | crc;
}

/* Bytes that do not repeat: pieces that were left out or have changed places change the CRC. */
void content_check_fill(char *body, size_t length)
{
	uint32_t state = 1;
	for (size_t i = CONTENT_CHECK_HEADER_BYTES; i < length; i++) {
		state = state * 1664525 + 1013904223; /* Numerical Recipes, 3rd ed., 7.1 */
		body[i] = (char)(state >> 24);
	}
	struct content_check c;
	content_check_begin(&c);
	memset(body, 0, CONTENT_CHECK_HEADER_BYTES);
	content_check_add(&c, body, length);
	big_endian_store(body + LENGTH_AT, join(c.length, c.crc));
}

/* Nothing is read. */
void content_check_begin(struct content_check *c)
{
	*c = (struct content_check){.length = 0};
}

/* The next bytes of the body. */
void content_check_add(struct content_check *c, const char *bytes, size_t length)
{
	size_t header = 0;
	if (c->length < CONTENT_CHECK_HEADER_BYTES) {
		size_t missing = CONTENT_CHECK_HEADER_BYTES - (size_t)c->length;
		header = length < missing ? length : missing;
		memcpy(c->header + c->length, bytes, header);
	}
	c->crc = (uint32_t)crc32_z(c->crc, (const unsigned char *)bytes + header, length - header);
	c->length += length;
}

/* The header says how long it is, and what the rest is. */
bool content_check_intact(const struct content_check *c)
{
	return c->length >= CONTENT_CHECK_HEADER_BYTES && c->length <= UINT32_MAX
		&& big_endian_load(c->header + LENGTH_AT) == join(c->length, c->crc);
}
