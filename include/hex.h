/* hex: numbers as text of a fixed width, 16 hexadecimal digits. Layer 0. */
#ifndef HEX_H
#define HEX_H

#include "big_endian.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEX_DIGITS 16

#define HEX_EACH(BYTE) (UINT64_C(0x0101010101010101) * (BYTE))

/* The digits of 32 bits, eight bytes at once. */
static inline uint64_t hex_digits(uint32_t value)
{
	uint64_t x = value;
	x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
	x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
	x = (x | x << 4) & HEX_EACH(0x0f);
	uint64_t letters = (x + HEX_EACH(6)) >> 4 & HEX_EACH(1); /* 1 where a digit is above 9 */
	return x + HEX_EACH('0') + letters * ('a' - '0' - 10);
}

/* Writes VALUE at AT, in small letters, without an end. */
static inline void hex_store(char *at, uint64_t value)
{
	big_endian_store(at, hex_digits((uint32_t)(value >> 32)));
	big_endian_store(at + 8, hex_digits((uint32_t)value));
}

/* Reads what hex_store() has written; false if it is not that. */
static inline bool hex_load(const char *at, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < HEX_DIGITS; i++) {
		unsigned digit = (unsigned char)at[i] - (unsigned)'0';
		unsigned letter = (unsigned char)at[i] - (unsigned)'a';
		if (digit > 9 && letter > 5)
			return false;
		*value = *value << 4 | (digit <= 9 ? digit : letter + 10);
	}
	return true;
}

#endif
