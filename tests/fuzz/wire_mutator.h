/* wire_mutator: mutations that know frames, for fuzz_wire.c. */
#ifndef WIRE_MUTATOR_H
#define WIRE_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/* Bytes in front of what is on the wire. */
#define WIRE_HEAD_BYTES 2

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
	uint8_t *out, size_t size_max, unsigned seed);

#endif
