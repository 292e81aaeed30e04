/* big_endian: 64-bit numbers as AMQP writes them. Layer 0. */
#ifndef BIG_ENDIAN_H
#define BIG_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* AT needs no alignment. */
static inline void big_endian_store(char *at, uint64_t value)
{
	uint64_t stored = htobe64(value);
	memcpy(at, &stored, sizeof stored);
}

static inline uint64_t big_endian_load(const char *at)
{
	uint64_t stored;
	memcpy(&stored, at, sizeof stored);
	return be64toh(stored);
}

#endif
