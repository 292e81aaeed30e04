/* groups: which group each message of a link belongs to. Layer 1.
 *
 * As qpid-send makes them: some groups are filled at a time, a message for each in turn; when one
 * is full, a new one takes its place. Groups are numbered from 0 on, over all links, and a group is
 * of one link. Sizes that are to be random depend on nothing but the group's number, so that each
 * run has the same.
 */
#ifndef GROUPS_H
#define GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What all links share. */
struct groups_plan {
	uint64_t size;     /* of each group, or the largest */
	bool randomize;    /* each has 1 to `size` messages */
	size_t interleave; /* groups filled at a time, 1 or more */
	uint64_t next;     /* number of the next new group */
};

struct group {
	uint64_t number;
	uint64_t size;
	uint64_t filled; /* messages it has had */
};

/* Those of a link that are being filled. */
struct groups {
	struct group *open; /* as many as are to be interleaved; NULL before the first message */
	size_t turn;        /* index of the one that the next message is of */
	struct group last;  /* that of the last message, with it */
};

/* The group of the next message, which is counted as one of it: its `filled`-th, from 1 on. Ends
 * the process if there is no memory. */
struct group groups_next(struct groups *g, struct groups_plan *plan);

/* The last message was not sent: it is as if groups_next() had not been called, once. */
void groups_back(struct groups *g, struct groups_plan *plan);

/* Frees what G has. */
void groups_free(struct groups *g);

#endif
