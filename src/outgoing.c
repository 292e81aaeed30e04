#define _GNU_SOURCE
#include "outgoing.h"

#include "clock.h"
#include "fatal.h"
#include "sending.h"

#include <proton/disposition.h>
#include <proton/session.h>
#include <proton/transport.h>
#include <stdlib.h>
#include <string.h>

/* How much is handed to the library at a time; more only when all of it has been written. It
 * bounds the memory and keeps stamps from ageing in a queue. */
#define BURST_BYTES (32 * 1024)

/* ---- come and go ---- */

/* Goes on where a link that was lost has ended, or begins. */
void outgoing_attach(struct sender *s, pn_link_t *link)
{
	struct outgoing *o = STAILQ_FIRST(&s->lost);
	if (o) {
		STAILQ_REMOVE_HEAD(&s->lost, next);
	} else {
		o = calloc(1, sizeof *o);
		if (!o)
			fatal(EXIT_INTERNAL, "link");
		o->next_sequence = s->options->first_sequence;
		batches_create(&o->batches, s->options->batch, o->next_sequence);
	}
	o->link = link;
	o->queued_bytes = 0;
	o->window_bytes = BURST_BYTES / 2; /* until one is seen to be open for more */
	STAILQ_INSERT_TAIL(&s->links, o, next);
	pn_link_set_context(link, o);
	if (s->questions.used)
		asking_open(s, o);
}

/* A long stall is booked in pieces, so that each report has its own. */
static void book_stall(struct sender *s, struct outgoing *o, int64_t now_ns)
{
	s->worker.stats.n.stalled_ns += (uint64_t)(now_ns - o->stall_booked_ns);
	o->stall_booked_ns = now_ns;
}

/* The link has had credit again, or the run ends, after it had none. */
static void end_stall(struct sender *s, struct outgoing *o, int64_t now_ns)
{
	if (!o->stall_began_ns)
		return;
	struct stats *stats = &s->worker.stats;
	book_stall(s, o, now_ns);
	stats->n.stalls++;
	histogram_record(&stats->timings[TIMING_STALL], now_ns - o->stall_began_ns);
	o->stall_began_ns = 0;
}

static void destroy(struct outgoing *o)
{
	groups_free(&o->groups);
	kept_free(&o->kept);
	asking_free(&o->asking);
	batches_free(&o->batches);
	free(o);
}

/* A message that was begun and not ended. What it says is for somebody else, if it was not sent
 * before; its number and its place in a group are free again. */
static void leave_part(struct sender *s, struct outgoing *o)
{
	bool again = o->part.again;
	struct letter *letter = sending_drop_part(s, o);
	if (letter && again) {
		free(letter);
	} else if (letter) {
		content_return(&s->content, letter);
		pacing_give_up(&s->pacing);
		asking_drop(o, --o->next_sequence);
		if (s->groups.size)
			groups_back(&o->groups, &s->groups);
	}
}

/* Those that say that no more will come are made anew; nothing was sent after them. */
static void take_back_eos(struct sender *s, struct outgoing *o)
{
	for (pn_delivery_t *d = pn_unsettled_head(o->link); d; d = pn_unsettled_next(d))
		if ((int64_t)pn_delivery_get_context(d) == SENDING_EOS_NS) {
			s->eos_sent--;
			o->eos_sent--;
			o->next_sequence--;
		}
}

/* It is no more, or will be another, on which all is sent again that was not settled. */
void outgoing_detach(struct sender *s, pn_link_t *link)
{
	struct outgoing *o = pn_link_get_context(link);
	STAILQ_REMOVE(&s->links, o, outgoing, next);
	end_stall(s, o, clock_monotonic_ns());
	if (s->options->presettled && pn_link_queued(link) > 0)
		s->undelivered = true;
	leave_part(s, o);
	if (s->questions.used)
		asking_lose(s, o);
	if (!worker_reconnects(&s->worker)) {
		destroy(o);
		return;
	}
	take_back_eos(s, o);
	o->again_next = o->kept.first;
	o->again_end = o->kept.next;
	STAILQ_INSERT_TAIL(&s->lost, o, next);
}

/* No link will take their places any more. */
void outgoing_forget(struct sender *s)
{
	struct outgoing *o;
	while ((o = STAILQ_FIRST(&s->lost))) {
		STAILQ_REMOVE_HEAD(&s->lost, next);
		destroy(o);
	}
}

/* ---- send ---- */

/* What -m asks for, less what is sent or begun. */
uint64_t outgoing_left(const struct sender *s)
{
	uint64_t sent = s->worker.stats.n.messages + s->parts;
	return s->options->messages ? s->options->messages - sent : UINT64_MAX;
}

static pn_transport_t *transport_of(const struct outgoing *o)
{
	return pn_connection_transport(pn_session_connection(pn_link_session(o->link)));
}

/* Anywhere between here and the peer. */
bool outgoing_outstanding(struct outgoing *o)
{
	return sending_has_again(o) || pn_link_unsettled(o->link)
		|| pn_session_outgoing_bytes(pn_link_session(o->link))
		|| pn_transport_pending(transport_of(o)) > 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How many bytes may be put into the library's queue. Each time the peer's session window opens
 * the library walks all of the queue, so that the cost of a long one is quadratic: it is kept at
 * about two windows, whose size shows in what was let through: all of it, if that was a window's
 * worth, says that the window may be larger. */
static size_t queue_room(struct outgoing *o)
{
	size_t queued_bytes = pn_session_outgoing_bytes(pn_link_session(o->link));
	if (!queued_bytes && o->queued_bytes >= o->window_bytes)
		o->window_bytes = least(2 * o->window_bytes, BURST_BYTES);
	else if (queued_bytes && queued_bytes < o->queued_bytes)
		o->window_bytes = o->queued_bytes - queued_bytes;
	o->queued_bytes = queued_bytes;
	/* a window may be larger than what is handed over at a time: that of a long message */
	size_t limit_bytes = least(2 * o->window_bytes, BURST_BYTES);
	if (queued_bytes >= least(o->window_bytes, limit_bytes))
		return 0;
	return limit_bytes - queued_bytes;
}

/* How many messages an open loop lets go: those that are due. A turn will come for the next. */
static uint64_t due(struct sender *s)
{
	if (!s->pacing.backlog)
		engine_turn_by(&s->worker.engine, schedule_due_ns(&s->pacing.next));
	return s->pacing.backlog;
}

/* How many messages are unsettled, or unanswered. Those that are to be sent AGAIN are awaited
 * already. */
static uint64_t depth_of(const struct sender *s, struct outgoing *o, bool again)
{
	return s->questions.used && !again ? o->asking.awaited.depth
					   : (uint64_t)pn_link_unsettled(o->link);
}

/* How many messages the queue depth lets go. Batches are let go whole: while one that was let go is
 * not sent to its end, that is what is left of it. */
static uint64_t depth_left(const struct sender *s, struct outgoing *o, uint64_t depth)
{
	uint64_t left = depth < s->max_unsettled ? s->max_unsettled - depth : 0;
	if (s->options->batch == 1 || s->pacing.used || sending_has_again(o))
		return left;
	if (!o->batch_left)
		o->batch_left = left - left % s->options->batch;
	return o->batch_left;
}

/* Sends as much as there is room for, COUNT messages at most. */
static void send_some(struct sender *s, struct outgoing *o, uint64_t count, size_t room_bytes)
{
	bool small_window = o->window_bytes < BURST_BYTES;
	uint64_t before = s->worker.stats.n.messages;
	if (o->part.delivery || (small_window && sending_next_bytes(s, o) > room_bytes))
		sending_part(s, o, room_bytes);
	else if (sending_has_again(o))
		sending_again(s, o, count, room_bytes);
	else
		sending_burst(s, o, count, room_bytes);
	uint64_t sent = s->worker.stats.n.messages - before;
	o->batch_left -= least(sent, o->batch_left);
}

/* What stops it is asked for from the socket inwards. */
enum time_cause outgoing_turn(struct sender *s, struct outgoing *o, int64_t now_ns)
{
	const struct options *options = s->options;
	struct stats *stats = &s->worker.stats;
	int credit = pn_link_credit(o->link);
	bool again = sending_has_again(o);
	uint64_t depth = depth_of(s, o, again);
	uint64_t count = again ? o->again_end - o->again_next : outgoing_left(s);

	if (s->questions.used && !o->asking.attached)
		return TIME_IDLE;
	if (credit > 0)
		end_stall(s, o, now_ns);
	if (pn_transport_pending(transport_of(o)) > 0)
		return TIME_SOCKET;
	size_t room_bytes = queue_room(o);
	if (!room_bytes || (o->queued_bytes && credit <= 0))
		return TIME_SESSION;
	if (o->part.delivery) {
		send_some(s, o, 1, room_bytes);
		return TIME_BUSY;
	}
	enum lines_state content = again ? LINES_READY
		: count                  ? content_peek(&s->content)
					 : LINES_ENDED;
	if (content != LINES_READY) {
		if (s->eos_sent == options->send_eos) /* credit is of no more use */
			pn_link_drained(o->link);     /* if the peer asks for it */
		s->starved = s->starved || content == LINES_WAITING;
		return depth && content == LINES_ENDED ? TIME_SETTLEMENT : TIME_IDLE;
	}
	if (s->pacing.used && !again) {
		count = least(count, due(s));
		if (!count)
			return TIME_PACING;
	}
	if (!options->presettled || s->questions.used) {
		count = least(count, depth_left(s, o, depth));
		if (!count)
			return TIME_SETTLEMENT;
	}
	if (credit <= 0) {
		stats->n.blocked++;
		if (!o->stall_began_ns)
			o->stall_began_ns = o->stall_booked_ns = now_ns;
		book_stall(s, o, now_ns);
		return TIME_CREDIT;
	}
	count = least(count, (uint64_t)credit);
	if (!again)
		count = least(count, s->worker.milestone - stats->n.messages);
	send_some(s, o, count, room_bytes);
	return TIME_BUSY;
}

/* A message that was begun, too. */
void outgoing_finish(struct sender *s, struct outgoing *o, int64_t now_ns)
{
	end_stall(s, o, now_ns);
	if (o->part.delivery || sending_has_again(o))
		outgoing_turn(s, o, now_ns);
}

/* When all before it is on its way: then it is not lost in a queue. */
bool outgoing_send_eos(struct sender *s, struct outgoing *o)
{
	bool may = pn_link_credit(o->link) > 0 && pn_transport_pending(transport_of(o)) <= 0
		&& queue_room(o);
	if (may)
		sending_eos(s, o);
	return may;
}

/* ---- settle ---- */

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

/* A delivery that has no outcome, and that the peer has not settled, is left alone. */
void outgoing_settle(struct sender *s, struct outgoing *o, struct engine_batch *batch)
{
	struct stats *stats = &s->worker.stats;
	struct clock_run clock = {.kind = CLOCK_KIND_MONOTONIC};
	uint64_t unsettled = stats->unsettled;
	for (pn_delivery_t *d = engine_batch_first(batch); d; d = engine_batch_next(batch)) {
		int64_t sent_ns = (int64_t)pn_delivery_get_context(d);
		if (!sent_ns) {
			/* not ours; the library takes it for one that uses up credit */
			engine_refuse(&s->worker.engine, o->link, "amqp:not-allowed",
				"the peer has sent a message to a sender");
			return; /* O is no more */
		}
		if (!pn_delivery_updated(d))
			continue; /* a second event of one that was handled */
		pn_delivery_clear(d);
		uint64_t state = pn_delivery_remote_state(d);
		if (__builtin_expect(sent_ns == SENDING_EOS_NS, 0)) {
			settle_eos(s, d, state);
			continue;
		}
		if (!count_outcome(&stats->n, state, pn_delivery_settled(d)))
			continue;
		int64_t now_ns = clock_run_ns(&clock);
		if (__builtin_expect(s->times_batches, 0))
			time_batch(s, o, d, now_ns);
		if (d == o->part.delivery) {
			abort_part(s, o);
			continue;
		}
		histogram_record(&stats->timings[TIMING_LATENCY], now_ns - sent_ns);
		if (s->keeps)
			forget(o, d);
		if (s->questions.used)
			asking_settle(o, number_of(d), is_refusal(state));
		pn_delivery_settle(d);
		stats->unsettled--;
	}
	if (stats->unsettled != unsettled)
		s->worker.moved = true;
}
