/* pacing: psend's open loop. Layer 5, for psend.c, outgoing.c and sending.c.
 *
 * Messages are due on a schedule that takes no notice of the peer. Two places in it are kept: that
 * of the next message to be sent, and that of the present. What is between them is the backlog: it
 * is sent as soon as it may be, and its time stamps say when it was due. With --catch-up none what
 * was missed by more than SCHEDULE_LATE_NS and a gap is left out instead.
 */
#ifndef PACING_H
#define PACING_H

#include "clock.h"
#include "options.h"
#include "schedule.h"

struct pacing {
	bool used;  /* --send-rate */
	bool begun; /* the schedule has started */
	bool ended; /* the last message was sent: no more are due */
	bool skips; /* --catch-up none */
	enum clock_kind clock;
	struct schedule_options options;
	struct schedule next; /* message to be sent */
	struct schedule now;  /* up to when `due` is counted */
	uint64_t backlog;     /* messages due and neither sent nor skipped */
	int64_t offset_ns;    /* of the stamps' clock to the monotonic one */
	int64_t offset_at_ns; /* when it was read; INT64_MIN: never */
	struct stats *stats;
};

void pacing_create(struct pacing *p, const struct options *o, struct stats *stats);

/* Traffic may begin since READY. With --start-at the schedule is in step with that time. */
void pacing_begin(struct pacing *p, int64_t start_at_ns, int64_t ready_ns);

/* Counts what has become due, and skips what is to be skipped. No more is due than the LEFT
 * messages that are to be sent. */
void pacing_turn(struct pacing *p, uint64_t left, int64_t now_ns);

/* The same, for a report. */
void pacing_cut(struct pacing *p, uint64_t left, int64_t now_ns);

/* The last message was sent, at NOW or before. */
void pacing_end(struct pacing *p, int64_t now_ns);

/* Takes the message that is next; the backlog is not 0. Returns when it was due, monotonic. */
static inline int64_t pacing_take(struct pacing *p)
{
	int64_t due_ns = schedule_due_ns(&p->next);
	schedule_take(&p->next);
	p->backlog--;
	return due_ns;
}

/* It was sent, to its end. Without --send-rate, nothing. */
static inline void pacing_count_sent(struct pacing *p, int64_t due_ns, int64_t sent_ns)
{
	int64_t delay_ns = sent_ns - due_ns;
	if (!p->used)
		return;
	p->stats->n.late += delay_ns > SCHEDULE_LATE_NS;
	histogram_record(&p->stats->timings[TIMING_SEND_DELAY], delay_ns);
}

/* It will not be sent now, and have another place when it is after all. The same. */
static inline void pacing_give_up(struct pacing *p)
{
	p->stats->n.slots_skipped += p->used;
}

/* What a message that was DUE then has as its time stamp. */
static inline int64_t pacing_stamp_ns(const struct pacing *p, int64_t due_ns)
{
	return due_ns + p->offset_ns;
}

#endif
