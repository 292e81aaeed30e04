/* worker: one thread, one reactor, its counters, and the course of a run. Layer 4.
 *
 * A run opens, runs, flushes what is outstanding, and closes. The program's part of it, which is
 * what to do with links, is a struct role. Everything here happens on the worker's thread, but for
 * the functions of the last section, which are the reporter's; it learns what happens from notes.
 *
 * Measuring begins when the sender's link is attached, and with --round-trip the one for answers,
 * or when the receiver's first message comes. The clock stops at the last message received, sent or
 * settled, or the last answer; for a sender that is ended while it waits, then; with --duration, at
 * its end. So the last note's time may lie before that of the last period, in which nothing
 * happened then.
 */
#ifndef WORKER_H
#define WORKER_H

#include "engine.h"
#include "notes.h"
#include "options.h"
#include "report.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>

/* What psend and precv do differently. SELF is the worker's `self`. */
struct role {
	/* Open what is needed besides the peer, before the thread starts; what cannot be opened
	 * ends the process. May be NULL, as `drain`. */
	void (*open)(void *self);
	/* LINK is attached: give it a context that is not NULL */
	void (*attached)(void *self, pn_link_t *link);
	/* LINK is no more; worker_reconnects() says whether another will take its place */
	void (*detached)(void *self, pn_link_t *link);
	void (*deliveries)(void *self, pn_link_t *link, struct engine_batch *batch);
	/* Whether messages that have come by LINK, which the peer has left, wait to be taken; NULL:
	 * never */
	bool (*holds)(void *self, pn_link_t *link);
	/* Send or take what may be, and say what the next wait would be for. */
	enum time_cause (*turn)(void *self, int64_t now_ns);
	/* The counters are about to be read, as of AT, or traffic is about to end: bring up to date
	 * what grows with the time. May be NULL. */
	void (*cut)(void *self, int64_t at_ns);
	/* The run is to end: let go what is held back. True when nothing is outstanding that may
	 * still be settled, as when no link is left by which it could be. Called each turn, until
	 * --close-timeout. */
	bool (*flushed)(void *self);
	/* Everything is closed: wait until what came is written, or ABANDON_FD is readable. */
	void (*drain)(void *self, int abandon_fd);
	/* With --round-trip or --reply. */
	const struct engine_answers *answers;
	/* EXIT_DONE, _SHORT, _VERIFY or _REFUSED, by what was counted. */
	enum exit_code (*verdict)(const void *self);
};

enum phase { PHASE_OPENING, PHASE_RUNNING, PHASE_FLUSHING, PHASE_CLOSING };

struct worker {
	const struct options *options;
	const struct role *role;
	void *self;
	struct engine engine;
	struct stats stats; /* busy time is not in it: it is what is left of the wall time */

	enum phase phase;
	enum stop_reason reason;
	enum exit_code failed; /* of the first failure that matters */
	unsigned links;        /* attached now */
	bool begun, warm;
	bool moved;                /* the role has sent, received or settled since the last turn */
	int64_t began_ns;          /* measuring; then 0 of the report's time scale */
	int64_t first_ns, last_ns; /* first message after the warm-up, last movement */
	int64_t quiet_since_ns;    /* for --timeout; 0: not yet ready */
	int64_t gap_booked_ns;     /* up to when a time without a connection, which is not over,
				      is in the counters; 0: there is none */
	int64_t flush_by_ns;
	int64_t start_at_ns; /* monotonic */
	uint64_t milestone;  /* messages, at which worker_milestone() is to be called */
	uint64_t next_report;
	struct counters cpu_base;

	/* where the clock stops if nothing more happens */
	int64_t stop_ns;
	uint64_t stop_waits_ns[TIME_CAUSES];

	/* with the reporter */
	pthread_t thread;
	atomic_bool report_asked, stop_asked, abandon_asked;
	int abandon_fd; /* readable when the run is to be left at once */
	struct notes notes;
	struct note end; /* kept until everything is closed */
	struct report_ready ready;
	char ready_host[NI_MAXHOST], ready_port[8];
	struct security_state ready_security;
};

/* ---- for roles ---- */

/* Whether traffic may begin (--start-at); if not, a turn will come when it may. */
bool worker_may_start(struct worker *w, int64_t now_ns);

/* Measuring begins, if it has not. */
void worker_begin(struct worker *w, int64_t now_ns);

/* A message was sent or taken at NOW; only the first call after the warm-up does anything. */
static inline void worker_first(struct worker *w, int64_t now_ns)
{
	if (__builtin_expect(!w->first_ns, 0))
		w->first_ns = now_ns;
}

/* Whether a connection that was lost is being made again. */
static inline bool worker_reconnects(const struct worker *w)
{
	return engine_is_dialing(&w->engine);
}

/* stats.n.messages has reached the milestone. */
void worker_milestone(struct worker *w);

/* Something local is of no use any more: it is reported, and the exit code is FAILURE's. The run
 * goes on. */
void worker_fail(struct worker *w, const struct failure *failure);

/* The run is to end, for REASON. Later calls change nothing. */
void worker_stop(struct worker *w, enum stop_reason reason);

/* ---- for the reporter ---- */

/* Starts the thread. */
void worker_start(
	struct worker *w, const struct options *options, const struct role *role, void *self);

void worker_ask_report(struct worker *w);  /* a NOTE_PERIOD, unless the run is ending */
void worker_ask_stop(struct worker *w);    /* in order */
void worker_ask_abandon(struct worker *w); /* at once */

/* After NOTE_END: waits for the thread and frees what it had. */
void worker_join(struct worker *w);

#endif
