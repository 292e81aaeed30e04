/* poller: the reactor's waiting, done by us. Layer 3.
 *
 * libqpid-proton lets a program replace the reactor's global handler, which is where it waits. The
 * library's own handler waits, reads, parses and writes in one call, so that nobody outside can
 * tell a wait from work; it writes only after poll() has said that it may, which costs a turn; it
 * sleeps in whole milliseconds; and it confuses deadlines when a descriptor goes away. This one
 * writes first, measures exactly the time spent in poll(), and leaves everything else (connecting,
 * accepting, binding transports, reading and writing sockets) to the library's handler.
 */
#ifndef POLLER_H
#define POLLER_H

#include "stats.h"

#include <poll.h>
#include <proton/reactor.h>

struct poller {
	pn_handler_t *library;         /* the library's own I/O handler */
	pn_selectable_t **selectables; /* not owned; same order as fds */
	struct pollfd *fds;
	size_t count, capacity;

	/* set by the owner before each wait */
	int64_t deadline_ns;   /* monotonic, INT64_MAX: none */
	enum time_cause cause; /* what a wait would be for */
	uint64_t *time_ns;     /* TIME_CAUSES sums that waits are added to */

	/* called with each new descriptor, before it is used */
	void (*opened)(void *context, int fd);
	void *context;
};

/* Makes P the reactor's global handler. P must outlive the reactor. */
void poller_install(struct poller *p, pn_reactor_t *reactor);

/* Frees what P has allocated, after the reactor was freed. */
void poller_destroy(struct poller *p);

#endif
