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

/* The peer has settled a message that was not sent to its end: it gets no more of it. One that is
 * new is sent, as far as anybody counts, and has used up its number. */
static void end_part(struct sender *s, struct outgoing *o, pn_delivery_t *d)
{
	struct stats *stats = &s->worker.stats;
	bool again = o->part.again;
	asking_drop(o, number_of(d));
	if (again)
		forget(o, d);
	else
		pacing_count_sent(
			&s->pacing, o->part.began_ns, (int64_t)pn_delivery_get_context(d));
	free(sending_drop_part(s, o));
	s->worker.moved = true;
	if (again) {
		stats->unsettled--;
		return;
	}
	if (s->keeps)
		kept_skip(&o->kept, number_of(d));
	o->batch_left -= o->batch_left > 0;
	if (++stats->n.messages >= s->worker.milestone)
		worker_milestone(&s->worker);
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

/* We are done with D as well; false if we were before: until it has told the peer so, the library
 * hands over more news of it. The library's own count tells, and costs the least. D stays as it is
 * for as long as its event does. */
static inline __attribute__((always_inline)) bool settle(struct outgoing *o, pn_delivery_t *d)
{
	int unsettled = pn_link_unsettled(o->link);
	if (d == o->part.delivery)
		pn_delivery_abort(d);
	else
		pn_delivery_settle(d);
	return pn_link_unsettled(o->link) != unsettled;
}

/* Whether we have settled D, without doing so: it may be the peer's, and to settle one of those on
 * a sender upsets the library. Few are not settled where this is asked. */
static bool is_settled(struct outgoing *o, const pn_delivery_t *d)
{
	pn_delivery_t *other = pn_unsettled_head(o->link);
	while (other && other != d)
		other = pn_unsettled_next(other);
	return !other;
}

/* The counter of how a delivery ended; NULL if it has not. */
static inline __attribute__((always_inline)) uint64_t *outcome_of(
	struct counters *n, uint64_t state, bool settled)
{
	switch (state) {
	case PN_ACCEPTED: return &n->accepted;
	case PN_REJECTED: return &n->rejected;
	case PN_RELEASED: return &n->released;
	case PN_MODIFIED: return &n->modified;
	}
	return settled ? &n->no_outcome : NULL;
}

static bool is_refusal(uint64_t state)
{
	return state == PN_REJECTED || state == PN_RELEASED || state == PN_MODIFIED;
}

/* Of a message that counts as nothing else. */
static void settle_eos(struct sender *s, struct outgoing *o, pn_delivery_t *d, uint64_t state)
{
	struct counters n = {0};
	uint64_t *outcome = outcome_of(&n, state, pn_delivery_settled(d));
	if (!outcome || !settle(o, d))
		return;
	++*outcome;
	s->eos_accepted += n.accepted + n.no_outcome;
	s->eos_refused += n.rejected + n.released + n.modified;
}

/* A delivery that has no outcome, and that the peer has not settled, is left alone, and so is one
 * that we have settled. False if it is none of ours; those that were sent settled have no time. */
static inline __attribute__((always_inline)) bool settle_one(
	struct sender *s, struct outgoing *o, pn_delivery_t *d, struct clock_run *clock)
{
	struct stats *stats = &s->worker.stats;
	int64_t sent_ns = (int64_t)pn_delivery_get_context(d);
	if (!sent_ns)
		return is_settled(o, d);
	if (!pn_delivery_updated(d))
		return true; /* a second event of one that was handled */
	pn_delivery_clear(d);
	uint64_t state = pn_delivery_remote_state(d);
	if (__builtin_expect(sent_ns == SENDING_EOS_NS, 0)) {
		settle_eos(s, o, d, state);
		return true;
	}
	uint64_t *outcome = outcome_of(&stats->n, state, pn_delivery_settled(d));
	if (!outcome || !settle(o, d))
		return true;
	++*outcome;
	int64_t now_ns = clock_run_ns(clock);
	if (__builtin_expect(s->times_batches, 0))
		time_batch(s, o, d, now_ns);
	if (d == o->part.delivery) {
		end_part(s, o, d);
		return true;
	}
	histogram_record(&stats->timings[TIMING_LATENCY], now_ns - sent_ns);
	if (s->keeps)
		forget(o, d);
	if (s->questions.used)
		asking_settle(o, number_of(d), is_refusal(state));
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
