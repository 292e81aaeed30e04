/* asking: psend --round-trip: the answers to what a link sends. Layer 5, for psend.c, outgoing.c
 * and sending.c.
 *
 * Messages have an address to which answers are to go, and an id: a prefix that is this run's own,
 * and the message's number. An answer's correlation id is that id, which any responder that keeps
 * to the convention makes so. Beside each link there is another, by which answers come; the two
 * stand and fall together. One clock times both ends of a round trip.
 *
 * A message is awaited until it is settled and answered. What was settled when its connection was
 * lost may have lost its answer, so nobody waits for it. Where a broker stands between, the answer
 * may come by the next link after all, and counts then: each link remembers as many of such
 * messages as may be awaited at a time: all of the last loss, and of earlier ones as far as there
 * is room. Others are forgotten, so that a run with any number of losses stays small; their
 * answers, if they come that late, are answers to nothing. What was not settled is sent again, and
 * waited for as before.
 */
#ifndef ASKING_H
#define ASKING_H

#include "awaited.h"
#include "credit.h"
#include "hex.h"

#include <proton/link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sender;
struct outgoing;
struct options;
struct engine_batch;
struct engine_answers;

/* Of an answer, what may stand before its correlation id, and that. */
#define ASKING_HEAD_BYTES 4096
#define ASKING_PREFIX     9 /* bytes: eight digits and a hyphen */
#define ASKING_ID         (ASKING_PREFIX + HEX_DIGITS)

/* What all links share. */
struct questions {
	bool used;      /* --round-trip */
	char *reply_to; /* where answers are to go */
	size_t opening; /* links, and the peer has not said anything yet */
	char prefix[ASKING_PREFIX + 1];
};

/* One link's. */
struct asking {
	pn_link_t *link;      /* by which answers come; NULL: none is open, or it was lost */
	bool attached;        /* messages may be sent */
	int64_t attach_by_ns; /* monotonic */
	struct credit credit; /* for answers */
	struct awaited awaited;
	size_t part_bytes; /* read of an answer that has not come to its end */
	size_t id_at;      /* where the id was in the last answer; 0: nowhere */
	char *head;        /* ASKING_HEAD_BYTES of the answer that is being read */
	char *seen;        /* the same of the last one, before its id */
};

/* What the options ask for. */
void asking_create(struct questions *q, const struct options *o);
void asking_destroy(struct questions *q);

extern const struct engine_answers ASKING_LINKS;

/* O's link is attached: the one for answers is opened. */
void asking_open(struct sender *s, struct outgoing *o);

/* It is lost: what could be answered by it alone is not waited for. */
void asking_lose(struct sender *s, struct outgoing *o);

/* There will be no other in its place. */
void asking_free(struct asking *a);

/* Gives up links on which no answers can come although there has been time. Links may be gone
 * when it returns. */
void asking_turn(struct sender *s, int64_t now_ns);

/* Whether there is a link to send on, and answers can come. */
bool asking_may_begin(const struct sender *s);

/* Whether there are answers to be waited for. */
bool asking_is_awaited(const struct sender *s);

/* Nobody waits any more for answers to messages that are settled. */
void asking_give_up(struct sender *s);

/* The message NUMBER is sent, and timed from SINCE on. */
void asking_begin(struct sender *s, struct outgoing *o, uint64_t number, int64_t since_ns);

/* It was not sent after all. */
void asking_drop(struct outgoing *o, uint64_t number);

/* The peer has settled it; there will be no answer if it was REFUSED. */
void asking_settle(struct outgoing *o, uint64_t number, bool refused);

#endif
