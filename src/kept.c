#define _GNU_SOURCE
#include "kept.h"

#include "fatal.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64

static struct kept_message *slot(const struct kept *k, uint64_t number)
{
	return &k->ring[number & (k->capacity - 1)];
}

/* With the messages that were not dropped. */
void kept_free(struct kept *k)
{
	for (uint64_t n = k->first; n != k->next; n++)
		free(slot(k, n)->bytes);
	free(k->ring);
	*k = (struct kept){0};
}

/* To twice the size. */
static void grow(struct kept *k)
{
	struct kept larger = *k;
	larger.capacity = k->capacity ? 2 * k->capacity : FIRST_CAPACITY;
	larger.ring = calloc(larger.capacity, sizeof *larger.ring);
	if (!larger.ring)
		fatal(EXIT_INTERNAL, "%zu unsettled messages", larger.capacity);
	for (uint64_t n = k->first; n != k->next; n++)
		*slot(&larger, n) = *slot(k, n);
	free(k->ring);
	*k = larger;
}

/* The next place, which is NUMBER's. The ring grows when it is full. */
static struct kept_message *take_place(struct kept *k, uint64_t number)
{
	if (number != k->next)
		fatalx(EXIT_INTERNAL, "messages to be kept are not in order");
	if (k->next - k->first == k->capacity)
		grow(k);
	return slot(k, k->next++);
}

/* An empty one may begin with any number. */
void kept_put(struct kept *k, uint64_t number, struct kept_message message)
{
	if (k->first == k->next)
		k->first = k->next = number;
	char *copy = malloc(message.length + 1);
	if (!copy)
		fatal(EXIT_INTERNAL, "unsettled message of %zu bytes", message.length);
	memcpy(copy, message.bytes, message.length);
	message.bytes = copy;
	*take_place(k, number) = message;
}

/* As if it had been put and dropped. */
void kept_skip(struct kept *k, uint64_t number)
{
	if (k->first != k->next)
		*take_place(k, number) = (struct kept_message){0};
}

/* A dropped one has no bytes in its place, either. */
struct kept_message kept_find(const struct kept *k, uint64_t number)
{
	if (number - k->first >= k->next - k->first) /* also for a number below the first */
		return (struct kept_message){0};
	return *slot(k, number);
}

/* And those before it that were dropped earlier make room. */
void kept_drop(struct kept *k, uint64_t number)
{
	if (number - k->first >= k->next - k->first)
		return;
	free(slot(k, number)->bytes);
	*slot(k, number) = (struct kept_message){0};
	while (k->first != k->next && !slot(k, k->first)->bytes)
		k->first++;
}
