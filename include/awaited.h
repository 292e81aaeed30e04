/* awaited: messages by number, for as long as something is to come of them: a settlement, an
 * answer, or both. Layer 0.
 *
 * Whatever order they leave in, finding, adding and taking one takes the same short time, and
 * memory is for as many as there have been at a time: an answer that never comes costs one place.
 */
#ifndef AWAITED_H
#define AWAITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct awaited_message {
	uint64_t number;
	int64_t since_ns; /* whatever its user makes of it */
	bool used;        /* this place of the table is taken */
	bool settled, answered;
	bool late; /* given up: it does not count in `depth` */
};

struct awaited {
	struct awaited_message *table; /* a number's place is its hash, or one of those behind */
	size_t capacity;               /* a power of two, more than twice `count`; or 0 */
	unsigned shift;                /* of a hash, to be a place */
	size_t count;                  /* messages */
	size_t depth;                  /* those that hold others up */
};

/* A is empty when it is all zeroes; this frees what it has, and makes it empty. */
void awaited_free(struct awaited *a);

/* Adds a message that is not there. Ends the process if there is no memory. */
void awaited_add(struct awaited *a, uint64_t number, int64_t since_ns, bool settled);

/* NULL if it is not there. Valid until one is added or removed. */
struct awaited_message *awaited_find(const struct awaited *a, uint64_t number);

/* Takes out M, which is in A. */
void awaited_remove(struct awaited *a, struct awaited_message *m);

/* What is settled and not answered holds nobody up any more, but is still there: all that is given
 * up now, and of what was before as many as fit into KEPT with it. Others are forgotten. */
void awaited_give_up(struct awaited *a, size_t kept);

#endif
