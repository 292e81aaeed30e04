/* outgoing: one link that psend sends on. Layer 5, for psend.c alone.
 *
 * How much may be sent, and when, is decided here: by credit, the peer's session window, the
 * socket, --max-unsettled, and what there is to send.
 */
#ifndef OUTGOING_H
#define OUTGOING_H

#include "message.h"
#include "options.h"
#include "worker.h"

#include <sys/queue.h>

/* A message that was sent and not settled when its link was lost. */
struct unsettled {
	uint64_t sn;
	int64_t sent_ns; /* monotonic */
};

/* One link. It outlives the library's when that is lost and another takes its place. */
struct outgoing {
	pn_link_t *link;
	struct unsettled *again; /* what is to be sent again, before anything else, in this order */
	size_t again_count, again_next;
	uint64_t next_sequence;
	int64_t stall_began_ns; /* monotonic: since when it has had a message and no credit, or 0 */
	int64_t stall_booked_ns; /* up to when that is in the counters */
	size_t queued_bytes;     /* in the library, not let through by the peer's session window */
	size_t window_bytes; /* what that window lets through at a time, as far as we have seen */
	pn_delivery_t *part; /* of which the library has not all bytes yet, or NULL */
	size_t part_bytes;   /* that it has */
	bool part_again;     /* it was sent before */
	STAILQ_ENTRY(outgoing) next;
};

/* What all links share. */
struct sender {
	struct worker worker;
	const struct options *options;
	struct message_template template;
	STAILQ_HEAD(, outgoing) links;
	STAILQ_HEAD(, outgoing) lost; /* links in whose place others are to come */
	uint64_t parts;   /* messages begun and not complete, but for those sent before */
	bool undelivered; /* pre-settled messages that a lost link has left in the library */
};

/* Messages that are not begun yet; UINT64_MAX if there is no limit. */
uint64_t outgoing_left(const struct sender *s);

/* LINK is attached: its context is its struct outgoing, until outgoing_detach(). */
void outgoing_attach(struct sender *s, pn_link_t *link);
void outgoing_detach(struct sender *s, pn_link_t *link);

/* Sends what may be sent, or says what it waits for. */
enum time_cause outgoing_turn(struct sender *s, struct outgoing *o, int64_t now_ns);

/* The peer has told what became of messages. */
void outgoing_settle(struct sender *s, struct outgoing *o, struct engine_batch *batch);

/* Whether anything sent is unsettled, or has not left the library for the kernel. What was sent on
 * a link that is gone for good will never be settled, and is not waited for. */
bool outgoing_outstanding(const struct outgoing *o);

/* Frees what is left of links that were lost. */
void outgoing_forget(struct sender *s);

/* The run ends: what was begun is ended. */
void outgoing_finish(struct sender *s, struct outgoing *o, int64_t now_ns);

#endif
