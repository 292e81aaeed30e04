/* numbering: the sequences of many senders, each known by two names. Layer 1.
 *
 * A sender's connection may be lost, and the sender come back: then it goes on with its numbers,
 * and what it sends again is a duplicate. So a sequence outlives the link by which it came, until
 * it is known to be over, or NUMBERING_IDLE_MAX others have been left behind after it.
 */
#ifndef NUMBERING_H
#define NUMBERING_H

#include "sequence.h"

#include <stdbool.h>
#include <sys/queue.h>

#define NUMBERING_IDLE_MAX 256

struct numbering {
	struct sequence sequence;
	unsigned links; /* that have it: two, if the loss of one has not been noticed yet */
	bool over;      /* no other link will have it */
	char *container, *link_name;
	STAILQ_ENTRY(numbering) next;
};

STAILQ_HEAD(numberings, numbering); /* the latest first */

/* The sequence of these names for one more link: one that is known, or else a new one that expects
 * FIRST. Ends the process if there is no memory. */
struct numbering *numbering_take(
	struct numberings *all, const char *container, const char *link_name, uint64_t first);

/* A link that had N is no more. */
void numbering_leave(struct numberings *all, struct numbering *n);

/* Frees ALL of them, when no link is left. */
void numbering_free_all(struct numberings *all);

#endif
