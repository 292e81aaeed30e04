#include "batches.h"

#include "fatal.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 16

/* Without memory, until one begins. */
void batches_create(struct batches *b, uint64_t size, uint64_t first)
{
	*b = (struct batches){.size = size, .first = first};
}

/* It may be used again after batches_create(). */
void batches_free(struct batches *b)
{
	free(b->ring);
	b->ring = NULL;
	b->capacity = 0;
}

static struct batch *slot(const struct batches *b, uint64_t number)
{
	return &b->ring[number & (b->capacity - 1)];
}

/* To twice as many, each at the place that its number has there. */
static void grow(struct batches *b)
{
	struct batches larger = *b;
	larger.capacity = b->capacity ? 2 * b->capacity : CAPACITY_MIN;
	larger.ring = malloc(larger.capacity * sizeof *larger.ring);
	if (!larger.ring)
		fatal(EXIT_INTERNAL, "batches");
	for (uint64_t number = b->oldest; number != b->end; number++)
		*slot(&larger, number) = *slot(b, number);
	free(b->ring);
	*b = larger;
}

/* The one after the last. */
void batches_begin(struct batches *b, int64_t began_ns, uint64_t began_ticks)
{
	if (b->end - b->oldest == b->capacity)
		grow(b);
	*slot(b, b->end++) = (struct batch){.began_ns = began_ns, .began_ticks = began_ticks};
}

/* Those in front that are complete are forgotten. */
unsigned batches_settle(struct batches *b, uint64_t sn, struct batch *batch)
{
	uint64_t number = (sn - b->first) / b->size;
	if (sn < b->first || number < b->oldest || number >= b->end)
		return 0;
	struct batch *at = slot(b, number);
	bool first = !at->settled++, last = at->settled == b->size;
	*batch = *at;
	while (b->oldest != b->end && slot(b, b->oldest)->settled == b->size)
		b->oldest++;
	return (first ? BATCHES_FIRST : 0) | (last ? BATCHES_LAST : 0);
}
