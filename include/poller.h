/* poller: the reactor's descriptors, done by us. Layer 3.
 *
 * The library's own I/O handler waits, reads, parses and writes in one call, so that nobody
 * outside can tell a wait from work; it writes only after poll() has said that it may, which costs
 * a turn; it sleeps in whole milliseconds; and it confuses deadlines when a descriptor goes away.
 * This one writes first, and measures exactly the time spent waiting. What is done with a
 * descriptor that is ready is in socket and listener. Deadlines of selectables are in ms of the
 * monotonic clock, so that setting the other one does not end connections.
 *
 * Descriptors are given to poll(), which is the quickest for a few of them. When there are more,
 * those on which nothing happens are parked: watched by an epoll descriptor, which is one entry
 * however many it stands for, they cost the others nothing. They come back when they are ready to
 * read, when their selectable has changed (poller_changed()), and when their deadline has come.
 *
 * A wait may be spent spinning. While there are few descriptors, sockets are then read without
 * asking whether there is something to be read, which spares a system call when there is; all the
 * others are looked at every few times.
 */
#ifndef POLLER_H
#define POLLER_H

#include "stats.h"
#include "waking.h"

#include <poll.h>
#include <proton/reactor.h>
#include <proton/selectable.h>

/* Descriptors that are none of the reactor's, at a time: four of the program's, and a dialer's. */
#define POLLER_GUESTS_MAX 5

/* One descriptor's. */
struct poller_seat {
	pn_selectable_t *selectable; /* not owned */
	unsigned quiet;              /* turns since it has read or written */
	bool spins;                  /* poller_spins_on() */
};

struct poller {
	struct poller_seat *seats; /* those in use first, then those parked */
	struct pollfd *fds;        /* of those in use, in their order; then parked_fd, and guests */
	size_t in_use, count, capacity;
	int parked_fd;              /* epoll; -1: none has been parked yet */
	int64_t parked_deadline_ms; /* no later than any deadline of those parked; INT64_MAX */
	int64_t poll_ns;            /* what a poll() that need not wait takes */
	struct waking waking;
	pn_collector_t *events; /* the reactor's queue, whose head is being handled */
	uint64_t looks;         /* while spinning, of all waits */

	/* set by the owner, once */
	bool busy;                 /* spin */
	uint64_t *polls, *spun_ns; /* sums: looks that found nothing, and their time */

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

/* Says of SELECTABLE that it is a socket, which may be read although nothing has come; so it is
 * when the poller spins. To be called before the reactor knows the selectable. */
void poller_spins_on(pn_selectable_t *selectable);

/* Tells the poller of SELECTABLE, which is registered with it as such while it is in use, that what
 * it wants may have changed. */
static inline void poller_changed(pn_selectable_t *selectable)
{
	if (!pn_selectable_is_registered(selectable))
		pn_reactor_update(pn_object_reactor(selectable), selectable);
}

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
