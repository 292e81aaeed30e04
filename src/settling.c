#define _GNU_SOURCE
#include "settling.h"

#include "clock.h"
#include "sending.h"

#include <proton/delivery.h>
#include <proton/disposition.h>
#include <stdlib.h>
#include <string.h>

static uint64_t number_of(pn_delivery_t *d)
{
	uint64_t sn;
	memcpy(&sn, pn_delivery_tag(d).start, sizeof sn);
	return sn;
}

/* It will not have to be sent again. */
static void forget(struct outgoing *o, pn_delivery_t *d)
{
	kept_drop(&o->kept, number_of(d));
}

/* The peer has settled a message that was not sent to its end: it gets no more of it. */
static void abort_part(struct sender *s, struct outgoing *o)
{
	bool again = o->part.again;
	pn_delivery_t *d = o->part.delivery;
	asking_drop(o, number_of(d));
	if (again)
		forget(o, d);
	else
		pacing_count_sent(
			&s->pacing, o->part.began_ns, (int64_t)pn_delivery_get_context(d));
	pn_delivery_abort(d);
	free(sending_drop_part(s, o));
	if (again)
		s->worker.stats.unsettled--;
	else
		s->worker.stats.n.messages++;
	s->worker.moved = true;
}

/* One of a batch's messages is settled. */
static void time_batch(struct sender *s, struct outgoing *o, pn_delivery_t *d, int64_t now_ns)
{
	struct stats *stats = &s->worker.stats;
	struct batch batch;
	unsigned settled = batches_settle(&o->batches, number_of(d), &batch);
	if (settled & BATCHES_FIRST)
		stats_time(stats, TIMING_BATCH_FIRST, now_ns - batch.began_ns);
	if (!(settled & BATCHES_LAST))
		return;
	stats_time(stats, TIMING_BATCH_LAST, now_ns - batch.began_ns);
	if (s->options->tsc)
		stats_time(stats, TIMING_BATCH_TICKS, (int64_t)(clock_ticks() - batch.began_ticks));
}

/* Counts how a delivery ended; false if it has not. */
static inline __attribute__((always_inline)) bool count_outcome(
	struct counters *n, uint64_t state, bool settled)
{
	switch (state) {
	case PN_ACCEPTED: n->accepted++; return true;
	case PN_REJECTED: n->rejected++; return true;
	case PN_RELEASED: n->released++; return true;
	case PN_MODIFIED: n->modified++; return true;
	}
	n->no_outcome += settled;
	return settled;
}

static bool is_refusal(uint64_t state)
{
	return state == PN_REJECTED || state == PN_RELEASED || state == PN_MODIFIED;
}

/* Of a message that counts as nothing else. */
static void settle_eos(struct sender *s, pn_delivery_t *d, uint64_t state)
{
	struct counters n = {0};
	if (!count_outcome(&n, state, pn_delivery_settled(d)))
		return;
	s->eos_accepted += n.accepted + n.no_outcome;
	s->eos_refused += n.rejected + n.released + n.modified;
	pn_delivery_settle(d);
}

/* A delivery that has no outcome, and that the peer has not settled, is left alone. False if it is
 * none of ours. */
static inline __attribute__((always_inline)) bool settle_one(
	struct sender *s, struct outgoing *o, pn_delivery_t *d, struct clock_run *clock)
{
	struct stats *stats = &s->worker.stats;
	int64_t sent_ns = (int64_t)pn_delivery_get_context(d);
	if (!sent_ns)
		return false;
	if (!pn_delivery_updated(d))
		return true; /* a second event of one that was handled */
	pn_delivery_clear(d);
	uint64_t state = pn_delivery_remote_state(d);
	if (__builtin_expect(sent_ns == SENDING_EOS_NS, 0)) {
		settle_eos(s, d, state);
		return true;
	}
	if (!count_outcome(&stats->n, state, pn_delivery_settled(d)))
		return true;
	int64_t now_ns = clock_run_ns(clock);
	if (__builtin_expect(s->times_batches, 0))
		time_batch(s, o, d, now_ns);
	if (d == o->part.delivery) {
		abort_part(s, o);
		return true;
	}
	histogram_record(&stats->timings[TIMING_LATENCY], now_ns - sent_ns);
	if (s->keeps)
		forget(o, d);
	if (s->questions.used)
		asking_settle(o, number_of(d), is_refusal(state));
	pn_delivery_settle(d);
	stats->unsettled--;
	return true;
}

/* To the end of the run, or to one that is none of ours: the library takes that for one that uses
 * up credit. */
void settling_take(struct sender *s, struct outgoing *o, struct engine_batch *batch)
{
	struct clock_run clock = {.kind = CLOCK_KIND_MONOTONIC};
	uint64_t unsettled = s->worker.stats.unsettled;
	pn_delivery_t *d = engine_batch_first(batch);
	while (d && settle_one(s, o, d, &clock))
		d = engine_batch_next(batch);
	if (s->worker.stats.unsettled != unsettled)
		s->worker.moved = true;
	if (d)
		engine_refuse(&s->worker.engine, o->link, "amqp:not-allowed",
			"the peer has sent a message to a sender"); /* O is no more */
}
