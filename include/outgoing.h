/* outgoing: one link that psend sends on. Layer 5, for psend.c, sending.c and settling.c.
 *
 * How much may be sent, and when, is decided here: by credit, the peer's session window, the
 * socket, --max-unsettled, and what there is to send. How it is sent is sending.h's; what becomes
 * of it, settling.h's.
 */
#ifndef OUTGOING_H
#define OUTGOING_H

#include "asking.h"
#include "batches.h"
#include "content.h"
#include "groups.h"
#include "kept.h"
#include "message.h"
#include "options.h"
#include "pacing.h"
#include "worker.h"

#include <sys/queue.h>

/* A message that is handed over in parts. */
struct part {
	pn_delivery_t *delivery; /* NULL: there is none */
	struct letter *letter;   /* its own bytes, and with them all if its body is its own */
	const char *rest;        /* what it shares with others */
	size_t rest_bytes;
	size_t done_bytes; /* that the library has */
	int64_t began_ns;  /* when it was begun, or due */
	bool again;        /* it was sent before */
};

/* One link. It outlives the library's when that is lost and another takes its place. */
struct outgoing {
	pn_link_t *link;
	uint64_t next_sequence;
	int64_t stall_began_ns; /* monotonic: since when it has had a message and no credit, or 0 */
	int64_t stall_booked_ns; /* up to when that is in the counters */
	size_t queued_bytes;     /* in the library, not let through by the peer's session window */
	size_t window_bytes; /* what that window lets through at a time, as far as we have seen */
	struct part part;
	struct groups groups;
	struct kept kept; /* unsettled messages, if they may have to be sent again */
	uint64_t again_next,
		again_end;      /* numbers of those to be sent again, before anything else */
	uint64_t batch_left;    /* of a batch that may be sent whole: messages not sent */
	struct batches batches; /* those under way, if they are timed */
	struct asking asking;   /* for answers */
	uint64_t eos_sent;
	STAILQ_ENTRY(outgoing) next;
};

/* What all links share. */
struct sender {
	struct worker worker;
	const struct options *options;
	struct message_template template, eos;
	struct content content;
	struct groups_plan groups;
	struct pacing pacing;
	struct questions questions;
	uint64_t group;         /* number of the one that the template is of */
	char *group_name;       /* with room for any number */
	uint64_t max_unsettled; /* of a link */
	bool alike;             /* messages differ in nothing but their stamp, and are not kept */
	bool keeps;             /* unsettled messages */
	bool notes;             /* when each message begins, for one of these: */
	bool times_batches;     /* besides pacing.used and questions.used */
	bool waits;             /* for --start-at, when all else is ready */
	uint64_t tsc_base;      /* ticks at some time before the run */
	int64_t tsc_base_ns;
	STAILQ_HEAD(, outgoing) links;
	STAILQ_HEAD(, outgoing) lost; /* links in whose place others are to come */
	uint64_t parts;   /* messages begun and not complete, but for those sent before */
	bool undelivered; /* pre-settled messages that a lost link has left in the library */
	bool starved;     /* this turn: a link had to wait for standard input */
	bool input_failed;
	uint64_t eos_sent, eos_accepted, eos_refused; /* --send-eos: they count as nothing else */
};

/* Messages that are not begun yet; UINT64_MAX if there is no limit. */
uint64_t outgoing_left(const struct sender *s);

/* LINK is attached: its context is its struct outgoing, until outgoing_detach(). */
void outgoing_attach(struct sender *s, pn_link_t *link);
void outgoing_detach(struct sender *s, pn_link_t *link);

/* Frees what is left of links that were lost. */
void outgoing_forget(struct sender *s);

/* Sends what may be sent, or says what it waits for. */
enum time_cause outgoing_turn(struct sender *s, struct outgoing *o, int64_t now_ns);

/* Whether anything sent is unsettled, or has not left the library for the kernel. What was sent on
 * a link that is gone will never be settled, and is not waited for. */
bool outgoing_outstanding(struct outgoing *o);

/* The run ends: what was begun is ended. */
void outgoing_finish(struct sender *s, struct outgoing *o, int64_t now_ns);

/* Sends one message that says that no more will come. False if that may not be sent yet. */
bool outgoing_send_eos(struct sender *s, struct outgoing *o);

#endif
