/* engine: one reactor and what AMQP asks of every program. Layer 3.
 *
 * It connects or listens, opens what the peer opens, attaches links, hands deliveries over, gives
 * the program its turn before each wait, notices failures, connects again if that is wanted, and
 * closes in order. What is sent or granted is the program's. Everything is called on the thread
 * that calls engine_run(), but for engine_wake().
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "backoff.h"
#include "dialer.h"
#include "fatal.h"
#include "listener.h"
#include "poller.h"
#include "stats.h"

#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/event.h>
#include <proton/link.h>
#include <proton/reactor.h>
#include <stdbool.h>
#include <stdint.h>

struct security;

struct engine_options {
	bool sender;             /* which end of a link we are */
	bool listen;             /* accept connections instead of making one */
	const char *host, *port; /* of the peer, or to listen on; port "0": the kernel chooses;
				    host NULL: connections come by engine_adopt() alone */
	const char *address;     /* of the node at the peer, when connecting */
	const char *container_id, *link_name;
	const struct security *security; /* never NULL */
	int64_t connect_timeout_ns;      /* to an attached link, from the start, or from accept() */
	uint64_t reconnect_attempts;     /* in a row; UINT64_MAX: no limit; 0: off */
	int64_t close_timeout_ns;        /* from engine_close() to closed connections */
	uint32_t idle_timeout_ms;        /* 0: off */
	uint32_t max_frame_bytes;        /* what a peer can make us keep of a frame */
	uint64_t session_window_bytes;   /* 0: unlimited */
	int sndbuf_bytes, rcvbuf_bytes;  /* 0: the kernel's */
	bool presettled;                 /* sender: nothing waits for a disposition */
	bool busy_poll;                  /* spin instead of sleeping */
	uint64_t drain_batch; /* deliveries handed over in one callback, 0: all there are */
};

struct engine;
struct engine_batch;

/* What a program does. CONTEXT is the engine's. */
struct engine_callbacks {
	void (*listening)(void *context, const char *host, const char *port);
	void (*attached)(void *context, pn_link_t *link);
	/* LINK is no more, or its connection; called once for each that was attached. If
	 * engine_is_dialing(), there will be another in its place. */
	void (*detached)(void *context, pn_link_t *link);
	/* deliveries of one link: see engine_batch */
	void (*deliveries)(void *context, pn_link_t *link, struct engine_batch *batch);
	/* The peer has left LINK: whether there is still something to be taken from it; asked again
	 * each turn, until there is not */
	bool (*holds)(void *context, pn_link_t *link);
	/* Everything that has arrived is handled; called until it makes no more work, then the
	 * engine waits, and books the wait under the cause returned. */
	enum time_cause (*turn)(void *context, int64_t now_ns);
	void (*failed)(void *context, const struct failure *failure);
	/* no connection is left and none will be made */
	void (*lost)(void *context);
};

/* What a program does with answer links: links in the other direction than its own, on which
 * answers to its messages travel. A link that we open is in a session of its own. CONTEXT is the
 * one that goes with them; a link's own context is not NULL from when it is known until it is
 * detached. */
struct engine_answers {
	bool vital; /* one that fails is told, and fails the run, as any other link does */
	/* The peer asks for LINK, whose ends are what it has named. Give it a context; if not, it
	 * is refused, with the condition that was set. NULL: none is accepted. */
	bool (*accepts)(void *context, pn_link_t *link);
	void (*attached)(void *context, pn_link_t *link);
	/* called once for each that had a context; it may not have been attached */
	void (*detached)(void *context, pn_link_t *link);
	void (*deliveries)(void *context, pn_link_t *link, struct engine_batch *batch);
};

struct engine_connection {
	pn_connection_t *connection;
	bool attached;        /* has had a link */
	bool failed;          /* has been reported */
	int64_t attach_by_ns; /* one that was accepted, and has no link by then, is ended */
	char peer[SOCKET_NAME_SIZE];
};

struct engine {
	const struct engine_options *options;
	const struct engine_callbacks *callbacks;
	void *context;
	const struct engine_answers *answers; /* NULL: there are no such links */
	void *answers_context;
	struct stats *stats;

	pn_reactor_t *reactor;
	struct poller poller;
	struct listener listener;
	pn_selectable_t *anchor; /* without a descriptor: it keeps the reactor running */
	bool looked;             /* what is there to read was read last turn */
	struct engine_connection *connections;
	size_t connection_count, connection_capacity, connection_limit;
	pn_link_t **lingering; /* that the peer has left, and the program not yet */
	size_t lingering_count;
	uint64_t frames_in, frames_out; /* of connections that are gone */
	int64_t strangers_due_ns;       /* no later than any attach_by_ns that matters; INT64_MAX */

	/* of a program that connects */
	struct dialer dialer;
	struct backoff backoff;
	bool dialing;             /* a connection is being made, up to an attached link */
	bool dialing_ended;       /* no more are made */
	int64_t attempt_began_ns; /* for the connect timeout */
	int64_t dial_at_ns;       /* when the next attempt begins; 0: one is under way */
	uint64_t failures;        /* in a row, with --reconnect */
	char last_reason[128];    /* why the last attempt failed; empty: it has not */
	bool opened;              /* the peer has opened the connection of this attempt */

	bool attached; /* there has been a link */
	int64_t close_by_ns;
	bool closing, abandoned;
};

/* Prepares E. engine_destroy() undoes it. */
void engine_create(struct engine *e, const struct engine_options *options,
	const struct engine_callbacks *callbacks, void *context, struct stats *stats);
void engine_destroy(struct engine *e);

/* There are to be answer links. Before engine_run(). */
void engine_serve_answers(struct engine *e, const struct engine_answers *answers, void *context);

/* Connects or listens, and runs until everything is closed. */
void engine_run(struct engine *e);

/* From turn(): the next turn must come by then. Holds for one wait. */
static inline void engine_turn_by(struct engine *e, int64_t when_ns)
{
	if (when_ns < e->poller.deadline_ns)
		e->poller.deadline_ns = when_ns;
}

/* The same, when FD is ready for EVENTS, which are poll()'s; at most POLLER_GUESTS_MAX of them. It
 * may already be: then the wait is none. */
static inline void engine_turn_when(struct engine *e, int fd, short events)
{
	if (e->poller.guest_count < POLLER_GUESTS_MAX)
		e->poller.guests[e->poller.guest_count++] =
			(struct pollfd){.fd = fd, .events = events};
}

/* Serves FD, which is connected already, as if it had been accepted; it is the engine's from now
 * on. Also before engine_run(). */
void engine_adopt(struct engine *e, int fd);

/* Whether a connection is being made that is still to come: the first, or one after a loss. */
static inline bool engine_is_dialing(const struct engine *e)
{
	return e->dialing && !e->dialing_ended;
}

/* No connection is made from now on: neither one that is not there yet nor one after a loss. */
void engine_end_dialing(struct engine *e);

/* Ends LINK, which has failed, on account of what the peer has done; of an answer link, also its
 * connection. */
void engine_refuse(struct engine *e, pn_link_t *link, const char *condition, const char *why);

/* Whether CONNECTION is of no use any more. Links by which something has come may outlive it, see
 * holds(); what else is opened there would stay for ever. */
bool engine_is_gone(pn_connection_t *connection);

/* Opens an answer link on CONNECTION, which is not gone, from ADDRESS if we are a sender, else to
 * it. */
pn_link_t *engine_open_answers(struct engine *e, pn_connection_t *connection, const char *name,
	const char *address, void *link_context);

/* Ends LINK in order, as its peer might. */
void engine_detach(struct engine *e, pn_link_t *link);

/* Closes links, sessions and connections, and stops listening. Idempotent. */
void engine_close(struct engine *e);

/* Leaves at once, without waiting for the peer. */
void engine_abandon(struct engine *e);

/* From any thread: makes a turn happen soon. */
void engine_wake(struct engine *e);

/* Brings the transports' frame counts into the stats. */
void engine_count_frames(struct engine *e);

/* A run of deliveries of one link, taken straight from the reactor's queue:
 *
 *	for (d = engine_batch_first(b); d; d = engine_batch_next(b)) ...
 *
 * The reactor drops the event at the queue's head when our callback returns, so an event that was
 * handled is always left there; an event of another kind that was reached on the way is kept in
 * `reached`, and the engine handles it next.
 */
struct engine_batch {
	pn_collector_t *collector;
	pn_link_t *link;
	pn_delivery_t *first;
	uint64_t left;
	pn_event_t *reached;
	bool has_output; /* the program has: there is something to write */
};

static inline pn_delivery_t *engine_batch_first(struct engine_batch *b)
{
	return b->first;
}

static inline pn_delivery_t *engine_batch_next(struct engine_batch *b)
{
	if (!--b->left || !pn_collector_more(b->collector))
		return NULL;
	pn_collector_pop(b->collector);
	pn_event_t *event = pn_collector_peek(b->collector);
	if (__builtin_expect(pn_event_type(event) == PN_DELIVERY, 1)) {
		pn_delivery_t *delivery = pn_event_context(event);
		if (__builtin_expect(pn_delivery_link(delivery) == b->link, 1))
			return delivery;
	}
	b->reached = event;
	return NULL;
}

#endif
