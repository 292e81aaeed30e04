/* content_check: a body whose bytes can be verified (--check-content). Layer 1.
 *
 * It begins with 16 bytes, all big endian: the message's number (8), the length of the whole body
 * (4), and the CRC-32 of all that is behind them (4), as zlib, Ethernet and gzip compute it. What
 * is behind them is the same in each message of a length, so that a sender makes it once and then
 * writes eight bytes a message.
 */
#ifndef CONTENT_CHECK_H
#define CONTENT_CHECK_H

#include "big_endian.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTENT_CHECK_HEADER_BYTES 16

/* Fills BODY, of LENGTH bytes: at least those of the header, at most UINT32_MAX. Its number is 0.
 */
void content_check_fill(char *body, size_t length);

/* Writes the number. */
static inline void content_check_number(char *body, uint64_t number)
{
	big_endian_store(body, number);
}

/* A body that is being read, in as many pieces as it comes. */
struct content_check {
	uint64_t length; /* of what was read */
	uint32_t crc;    /* of what was read behind the header */
	char header[CONTENT_CHECK_HEADER_BYTES];
};

void content_check_begin(struct content_check *c);
void content_check_add(struct content_check *c, const char *bytes, size_t length);

/* Whether what was read is a whole and undamaged body. */
bool content_check_intact(const struct content_check *c);

/* The number that an intact body carries. */
static inline uint64_t content_check_read_number(const struct content_check *c)
{
	return big_endian_load(c->header);
}

#endif
