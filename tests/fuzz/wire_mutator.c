/* Most inputs that are changed anywhere end at the first frame, whose size no longer fits. Here an
 * input is a list of parts, which are protocol headers and frames; they are dropped, repeated,
 * moved, or changed inside, and then their sizes are made right.
 */
#include "wire_mutator.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX    512
#define HEADER_BYTES 8 /* of a protocol, and of a frame */

/* A piece of an input that is kept whole. */
struct part {
	const uint8_t *bytes;
	size_t size;
};

struct parts {
	struct part items[PARTS_MAX];
	size_t count;
};

static uint32_t load_size(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8
		| bytes[3];
}

static void store_size(uint8_t *bytes, size_t size)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(size >> (24 - 8 * i));
}

static bool is_protocol_header(const uint8_t *bytes, size_t size)
{
	return size >= HEADER_BYTES && !memcmp(bytes, "AMQP", 4);
}

/* The length of what comes first; what is no frame is one part to the end. */
static size_t part_size(const uint8_t *bytes, size_t size)
{
	if (is_protocol_header(bytes, size))
		return HEADER_BYTES;
	if (size < HEADER_BYTES)
		return size;
	size_t length = load_size(bytes);
	return length >= HEADER_BYTES && length <= size ? length : size;
}

static void append(struct parts *p, struct part part)
{
	if (p->count < PARTS_MAX)
		p->items[p->count++] = part;
}

static void split(struct parts *p, const uint8_t *bytes, size_t size)
{
	while (size) {
		size_t length = part_size(bytes, size);
		append(p, (struct part){bytes, length});
		bytes += length;
		size -= length;
	}
}

static void insert(struct parts *p, size_t at, struct part part)
{
	if (p->count == PARTS_MAX)
		return;
	memmove(p->items + at + 1, p->items + at, (p->count - at) * sizeof part);
	p->items[at] = part;
	p->count++;
}

static void take_out(struct parts *p, size_t at)
{
	p->count--;
	memmove(p->items + at, p->items + at + 1, (p->count - at) * sizeof *p->items);
}

/* Writes the parts one after the other, as far as they fit. */
static size_t join(const struct parts *p, uint8_t *out, size_t size_max)
{
	size_t size = 0;
	for (size_t i = 0; i < p->count && size + p->items[i].size <= size_max; i++) {
		memcpy(out + size, p->items[i].bytes, p->items[i].size);
		size += p->items[i].size;
	}
	return size;
}

/* A changed copy, which the caller frees. What a frame has behind its header is changed by the
 * fuzzer's own means, or the type and channel are. */
static uint8_t *change(struct part *part, unsigned random)
{
	size_t room = part->size + 64;
	uint8_t *copy = malloc(room);
	memcpy(copy, part->bytes, part->size);
	part->bytes = copy;
	if (part->size < HEADER_BYTES || is_protocol_header(copy, part->size)) {
		part->size = LLVMFuzzerMutate(copy, part->size, room);
		return copy;
	}
	if (random % 16 == 0)
		copy[4 + random / 16 % 4] = (uint8_t)(random >> 8);
	else
		part->size = HEADER_BYTES
			+ LLVMFuzzerMutate(copy + HEADER_BYTES, part->size - HEADER_BYTES,
				room - HEADER_BYTES);
	if (random % 64 != 1) /* it may be wrong now and then */
		store_size(copy, part->size);
	return copy;
}

static unsigned draw(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* One change of a list of parts. Returns what is to be freed. */
static uint8_t *change_list(struct parts *p, unsigned *state)
{
	size_t at = draw(state) % p->count, to = draw(state) % p->count;
	struct part part = p->items[at];
	switch (draw(state) % 8) {
	case 0: take_out(p, at); return NULL;
	case 1: insert(p, to, part); return NULL;
	case 2:
		take_out(p, at);
		insert(p, to < p->count ? to : p->count, part);
		return NULL;
	case 3:
		for (unsigned i = draw(state) % 16; i; i--)
			insert(p, at, part);
		return NULL;
	default: return change(&p->items[at], draw(state));
	}
}

/* Called by libFuzzer. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	static struct parts p;
	unsigned state = seed;
	uint8_t *copies[4] = {NULL};
	p.count = 0;
	if (size > WIRE_HEAD_BYTES)
		split(&p, data + WIRE_HEAD_BYTES, size - WIRE_HEAD_BYTES);
	if (!p.count || draw(&state) % 32 == 0)
		return LLVMFuzzerMutate(data, size, size_max);
	if (draw(&state) % 8 == 0)
		data[draw(&state) % WIRE_HEAD_BYTES] = (uint8_t)draw(&state);
	uint8_t *out = malloc(size_max);
	size_t changes = 1 + draw(&state) % 4;
	for (size_t i = 0; i < changes && p.count; i++)
		copies[i] = change_list(&p, &state);
	size_t length = join(&p, out, size_max - WIRE_HEAD_BYTES);
	memcpy(data + WIRE_HEAD_BYTES, out, length);
	free(out);
	for (size_t i = 0; i < changes; i++)
		free(copies[i]);
	return WIRE_HEAD_BYTES + length;
}

/* Called by libFuzzer: the beginning of one and a run of the other's frames. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
	uint8_t *out, size_t size_max, unsigned seed)
{
	static struct parts p, q;
	unsigned state = seed;
	p.count = q.count = 0;
	if (a_size <= WIRE_HEAD_BYTES || b_size <= WIRE_HEAD_BYTES || size_max < a_size)
		return 0;
	split(&p, a + WIRE_HEAD_BYTES, a_size - WIRE_HEAD_BYTES);
	split(&q, b + WIRE_HEAD_BYTES, b_size - WIRE_HEAD_BYTES);
	size_t from = draw(&state) % q.count, to = from + 1 + draw(&state) % (q.count - from);
	size_t at = draw(&state) % p.count;
	for (size_t i = from; i < to; i++)
		insert(&p, at + (i - from), q.items[i]);
	memcpy(out, a, WIRE_HEAD_BYTES);
	return WIRE_HEAD_BYTES + join(&p, out + WIRE_HEAD_BYTES, size_max - WIRE_HEAD_BYTES);
}
