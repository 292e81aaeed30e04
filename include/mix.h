/* mix: numbers that look random, and are the same on every machine. Layer 0.
 *
 * SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
 */
#ifndef MIX_H
#define MIX_H

#include <stdint.h>

#define MIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* A state that is another one at another time, and in another process. */
static inline uint64_t mix_seed(int64_t time_ns, int process)
{
	return (uint64_t)time_ns ^ (uint64_t)process << 40;
}

/* The next number of the sequence that begins with any STATE. */
static inline uint64_t mix_next(uint64_t *state)
{
	uint64_t z = *state += MIX_STEP;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* The one at INDEX, from 0 on, of the sequence that begins with 0. */
static inline uint64_t mix_at(uint64_t index)
{
	uint64_t state = index * MIX_STEP;
	return mix_next(&state);
}

#endif
