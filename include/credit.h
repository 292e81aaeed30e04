/* credit: when to grant how much. Layer 1: arithmetic only.
 *
 * The level is what the receiving application has granted and not yet taken: it starts at the
 * window, falls by one with each message taken, and rises with each grant. Whenever it has fallen
 * to `low`, `add` is granted.
 */
#ifndef CREDIT_H
#define CREDIT_H

#include <stdint.h>

#define CREDIT_MAX INT32_MAX /* the library's credit is a signed 32-bit number */

struct credit {
	uint32_t window; /* messages, granted at the start; 1 .. CREDIT_MAX */
	uint32_t low;    /* messages, below window */
	uint32_t add;    /* messages, 1 .. CREDIT_MAX - low */
	uint32_t level;  /* messages */
};

/* The first grant. At most WANTED, which is how many messages may still be asked for. */
static inline uint32_t credit_start(struct credit *c, uint64_t wanted)
{
	c->level = wanted < c->window ? (uint32_t)wanted : c->window;
	return c->level;
}

/* One message was taken. A peer may send more than it was granted. */
static inline void credit_take(struct credit *c)
{
	c->level -= c->level > 0;
}

/* What to grant now, 0 most of the time; at most WANTED. */
static inline uint32_t credit_grant(struct credit *c, uint64_t wanted)
{
	if (__builtin_expect(c->level > c->low, 1))
		return 0;
	uint32_t grant = wanted < c->add ? (uint32_t)wanted : c->add;
	c->level += grant;
	return grant;
}

#endif
