/* incoming: one link that precv receives on. Layer 5, for precv.c alone.
 *
 * Its credit, the messages that come by it and how they are settled.
 */
#ifndef INCOMING_H
#define INCOMING_H

#include "answering.h"
#include "clock.h"
#include "credit.h"
#include "numbering.h"
#include "options.h"
#include "pacer.h"
#include "printer.h"
#include "stamp.h"
#include "worker.h"

#include <sys/queue.h>

/* A message that fits is read in one call. */
#define BUFFER_BYTES (64 * 1024)

/* One link. */
struct incoming {
	pn_link_t *link;
	struct numbering *numbering;
	bool granted; /* the first credit */
	struct credit credit;
	struct stamp_reader stamp;
	pn_delivery_t **held; /* taken and not yet settled, fewer than --ack-frequency */
	uint64_t held_count;
	int64_t settle_by_ns;      /* when the held ones must be settled; 0 if not yet decided */
	struct answer_form answer; /* to messages like the last one */
	struct answer_link *answer_to; /* where it goes; NULL: that is not known */
	size_t part_bytes;  /* of a message that has not come to its end, does not fit, or waits for
			       its answer to be sent */
	int64_t arrived_ns; /* when one that waits for that had come to its end; 0: none waits */
	char *part;         /* its first bytes, or all of them; NULL: there is no room for any */
	size_t part_room;   /* how many of them are kept */
	STAILQ_ENTRY(incoming) next;
};

/* What all links share. */
struct receiver {
	struct worker worker;
	const struct options *options;
	uint64_t outcome; /* the library's code */
	uint64_t limit;   /* messages in all */
	uint64_t take_to; /* the same while messages may be taken, else 0 */
	uint64_t wanted;  /* messages for which no credit has been granted yet */
	struct pacer pacer;
	bool waiting;    /* a message is there and not due yet */
	bool has_output; /* credit, a disposition or an answer is to be written */
	bool looks;      /* into messages */
	bool whole;      /* all bytes of a message are kept until it is taken */
	struct printer printer;
	struct text text; /* of a body */
	struct answering answering;
	STAILQ_HEAD(, incoming) links;
	struct numberings numberings; /* of these links, and of some that were lost */
	char buffer[BUFFER_BYTES];
};

/* LINK is attached: its context is its struct incoming, until incoming_detach(). */
void incoming_attach(struct receiver *r, pn_link_t *link);
void incoming_detach(struct receiver *r, pn_link_t *link);

/* Grants the first credit. */
void incoming_start(struct receiver *r, struct incoming *in);

/* Notes how low the sender's credit is. */
void incoming_note_credit(struct receiver *r, const struct incoming *in);

/* Takes one delivery: reads, accounts for, and settles it, and grants credit. A delivery that was
 * taken before, or of which the end has not come, is left alone. */
void incoming_take(
	struct receiver *r, struct incoming *in, pn_delivery_t *d, struct clock_run *clock);

/* The same with a run of them. */
void incoming_take_all(struct receiver *r, struct incoming *in, struct engine_batch *batch);

/* Settles messages that have been held for --ack-frequency: all, or those held for long. */
void incoming_settle(struct receiver *r, struct incoming *in);
void incoming_settle_late(struct receiver *r, struct incoming *in, int64_t now_ns);

#endif
