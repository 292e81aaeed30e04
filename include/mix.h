/* mix: numbers that look random. Layer 0. */
#ifndef MIX_H
#define MIX_H

#include <stdint.h>

/* The well mixed bits of NUMBER: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Its sequence is
 * that of numbers which are MIX_STEP apart. */
#define MIX_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mix(uint64_t number)
{
	uint64_t z = number;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

#endif
