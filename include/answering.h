/* answering: precv --reply: an answer to each message that asks for one. Layer 5, for precv.c and
 * incoming.c.
 *
 * What an answer says is answer.h's; it is settled if the message is. It goes to the address that
 * the message has as reply-to: by a link on which the peer receives from there, or, where we have
 * connected to a peer, by one that is opened when the address is first met. While an answer may not
 * be sent, its message waits, and those behind it: in the end the sender has no credit. A long one
 * is handed over in parts, as the peer's session window lets them through; its body is the
 * message's, which waits as well. If that goes, or the run ends, the answer is aborted. A message
 * that still waits when the connection it came by is gone is unanswerable, unless there is a link
 * for its address on another.
 */
#ifndef ANSWERING_H
#define ANSWERING_H

#include "answer.h"
#include "answer_part.h"
#include "engine.h"
#include "stats.h"

#include <proton/delivery.h>
#include <proton/link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct receiver;
struct incoming;

/* One link for answers, or one that cannot be had. */
struct answer_link {
	pn_link_t *link; /* NULL: the peer has refused it */
	pn_connection_t *connection;
	char *address;
	bool ours;               /* we have opened it */
	bool attached;           /* or refused */
	int64_t by_ns;           /* monotonic: attached by then, or refused until then */
	uint64_t next_tag;       /* a delivery's tag is a number */
	struct answer_part part; /* its owner is the struct incoming whose message waits */
	TAILQ_ENTRY(answer_link) next;
};

struct answering {
	TAILQ_HEAD(answer_links, answer_link) links; /* the one used last is the first */
	size_t opened, accepted;                     /* by us, by peers */
	size_t opening;        /* by us, and the peer has not said anything yet */
	uint64_t named;        /* links, and addresses, that we have made a name for */
	enum time_cause waits; /* what messages wait for that cannot be answered yet, or IDLE */
	bool told;             /* that there are messages without an answer */
};

void answering_create(struct answering *a);

/* Every link is gone by now. */
void answering_destroy(struct answering *a);

extern const struct engine_answers ANSWERING_LINKS;

/* Answers the message D, which IN's stamp reader has read last, all of which is at BYTES, or counts
 * it as one that has no answer. False if it must wait: to be called again with that message. */
bool answering_answer(struct receiver *r, struct incoming *in, pn_delivery_t *d, const char *bytes,
	size_t length);

/* IN's message waits no more: what was begun of its answer is aborted. */
void answering_abort(struct incoming *in);

/* The same for good: IN's link is no more. */
void answering_leave(struct receiver *r, struct incoming *in);

/* Whether every answer has left, and has been settled by its peer unless it was sent settled: a
 * broker may drop what a connection that closes has just brought. */
bool answering_flushed(const struct receiver *r);

/* A turn begins. */
void answering_turn(struct receiver *r, int64_t now_ns);

#endif
