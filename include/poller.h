/* poller: the reactor's descriptors, done by us. Layer 3.
 *
 * The library's own I/O handler waits, reads, parses and writes in one call, so that nobody
 * outside can tell a wait from work; it writes only after poll() has said that it may, which costs
 * a turn; it sleeps in whole milliseconds; and it confuses deadlines when a descriptor goes away.
 * This one writes first, and measures exactly the time spent waiting. What is done with a
 * descriptor that is ready is in socket and listener. Deadlines of selectables are in ms of the
 * monotonic clock, so that setting the other one does not end connections.
 */
#ifndef POLLER_H
#define POLLER_H

#include "stats.h"

#include <poll.h>
#include <proton/reactor.h>

/* Descriptors that are none of the reactor's, at a time: four of the program's, and a dialer's. */
#define POLLER_GUESTS_MAX 5

struct poller {
	pn_selectable_t **selectables; /* not owned; same order as fds */
	struct pollfd *fds;
	size_t count, capacity;
	int64_t poll_ns; /* what a poll() that need not wait takes */

	/* set by the owner before each wait */
	int64_t deadline_ns;                     /* monotonic, INT64_MAX: none */
	enum time_cause cause;                   /* what a wait would be for */
	uint64_t *time_ns;                       /* TIME_CAUSES sums that waits are added to */
	struct pollfd guests[POLLER_GUESTS_MAX]; /* they end a wait, and are served by the owner */
	size_t guest_count;
};

/* P serves REACTOR from now on, in place of its global handler. */
void poller_create(struct poller *p, pn_reactor_t *reactor);

/* Frees what P has allocated, after the reactor was freed. */
void poller_destroy(struct poller *p);

/* One event; those that are not about descriptors are ignored. */
void poller_handle(struct poller *p, pn_event_t *event, pn_event_type_t type);

/* Writes what there is to write. May put events into the reactor's queue, as may those below. */
void poller_write(struct poller *p);

/* The same, in the middle of a turn: also what the library would ask to write only at its end. */
void poller_flush(struct poller *p);

/* Reads and writes what the descriptors are ready for; never waits. */
void poller_look(struct poller *p);

/* The same, but waits until one is ready or a deadline has come. */
void poller_wait(struct poller *p);

#endif
