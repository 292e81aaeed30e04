/* kept: messages by number, for as long as they may have to be sent again. Layer 0.
 *
 * Numbers are those of one sender, and ascend by one. Whatever order they are dropped in, finding
 * and dropping one takes the same short time.
 */
#ifndef KEPT_H
#define KEPT_H

#include <stddef.h>
#include <stdint.h>

struct kept_message {
	char *bytes; /* NULL: dropped */
	size_t length;
	int64_t sent_ns; /* when it was sent first: whatever its user makes of it */
};

struct kept {
	struct kept_message *ring; /* the message with number N is at N % capacity */
	uint64_t first, next;      /* numbers of the oldest one that is kept, and of the next one */
	size_t capacity;           /* a power of two, or 0 */
};

/* K is empty when it is all zeroes; this frees what it has, and makes it empty. */
void kept_free(struct kept *k);

/* Keeps a copy of a message; it must have the number after that of the last one, unless K is empty.
 * Ends the process if there is no memory. */
void kept_put(struct kept *k, uint64_t number, struct kept_message message);

/* There is no message with this number, which is the next one: it takes the place of one that was
 * dropped. The same. */
void kept_skip(struct kept *k, uint64_t number);

/* The message, or one without bytes if it is not kept. */
struct kept_message kept_find(const struct kept *k, uint64_t number);

/* Forgets it, if it is kept. */
void kept_drop(struct kept *k, uint64_t number);

#endif
