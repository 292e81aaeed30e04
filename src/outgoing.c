#define _GNU_SOURCE
#include "outgoing.h"

#include "clock.h"
#include "fatal.h"

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
	}
	o->link = link;
	o->queued_bytes = 0;
	o->window_bytes = BURST_BYTES / 2; /* until one is seen to be open for more */
	STAILQ_INSERT_TAIL(&s->links, o, next);
	pn_link_set_context(link, o);
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
	histogram_record(&stats->stall, now_ns - o->stall_began_ns);
	o->stall_began_ns = 0;
}

static void destroy(struct outgoing *o)
{
	free(o->again);
	free(o);
}

/* Lists what was sent on the link that is lost and not settled, and what was to be sent again and
 * has not been, which is younger. A delivery's tag is its message's number. */
static void keep_unsettled(struct outgoing *o)
{
	size_t left = o->again_count - o->again_next, count = 0;
	struct unsettled *all = calloc((size_t)pn_link_unsettled(o->link) + left + 1, sizeof *all);
	if (!all)
		fatal(EXIT_INTERNAL, "unsettled messages");
	for (pn_delivery_t *d = pn_unsettled_head(o->link); d; d = pn_unsettled_next(d)) {
		if (d == o->part && !o->part_again)
			continue; /* it is begun anew */
		pn_delivery_tag_t tag = pn_delivery_tag(d);
		memcpy(&all[count].sn, tag.start, sizeof all->sn);
		all[count++].sent_ns = (int64_t)pn_delivery_get_context(d);
	}
	if (left)
		memcpy(all + count, o->again + o->again_next, left * sizeof *all);
	free(o->again);
	o->again = all;
	o->again_count = count + left;
	o->again_next = 0;
}

/* It is no more, or will be another. */
void outgoing_detach(struct sender *s, pn_link_t *link)
{
	struct outgoing *o = pn_link_get_context(link);
	STAILQ_REMOVE(&s->links, o, outgoing, next);
	end_stall(s, o, clock_monotonic_ns());
	if (s->options->presettled && pn_link_queued(link) > 0)
		s->undelivered = true;
	if (o->part && !o->part_again) {
		s->parts--;
		o->next_sequence--;
	}
	if (!worker_reconnects(&s->worker)) {
		destroy(o);
		return;
	}
	keep_unsettled(o);
	o->part = NULL;
	STAILQ_INSERT_TAIL(&s->lost, o, next);
}

/* At the end. */
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

static size_t left_again(const struct outgoing *o)
{
	return o->again_count - o->again_next;
}

static pn_transport_t *transport_of(const struct outgoing *o)
{
	return pn_connection_transport(pn_session_connection(pn_link_session(o->link)));
}

/* Anywhere between here and the peer. */
bool outgoing_outstanding(const struct outgoing *o)
{
	return left_again(o) || pn_link_unsettled(o->link)
		|| pn_session_outgoing_bytes(pn_link_session(o->link))
		|| pn_transport_pending(transport_of(o)) > 0;
}

/* The time of sending travels in the delivery's context, a pointer that is ours to use. */
_Static_assert(sizeof(void *) >= sizeof(int64_t), "a time must fit into a pointer");

static inline pn_delivery_t *begin_message(
	struct sender *s, struct outgoing *o, uint64_t sn, int64_t ts, int64_t sent_ns)
{
	message_stamp(&s->template, sn, ts);
	pn_delivery_t *d = pn_delivery(o->link, pn_dtag((const char *)&sn, sizeof sn));
	if (!s->options->presettled)
		pn_delivery_set_context(d, (void *)sent_ns);
	return d;
}

static inline void end_message(struct sender *s, struct outgoing *o, pn_delivery_t *d)
{
	if (s->options->presettled)
		pn_delivery_settle(d);
	else
		pn_link_advance(o->link);
}

static inline void send_one(
	struct sender *s, struct outgoing *o, uint64_t sn, int64_t ts, int64_t sent_ns)
{
	pn_delivery_t *d = begin_message(s, o, sn, ts, sent_ns);
	pn_link_send(o->link, s->template.bytes, s->template.length);
	end_message(s, o, d);
}

/* COUNT messages, BYTES of which went to the library since BEGAN. */
static void count_sent(
	struct sender *s, struct outgoing *o, uint64_t count, size_t bytes, int64_t began_ns)
{
	struct counters *n = &s->worker.stats.n;
	n->call_ns += (uint64_t)(clock_monotonic_ns() - began_ns);
	o->queued_bytes += bytes;
	n->messages += count;
	n->content_bytes += count * s->options->content_size_bytes;
	if (!s->options->presettled)
		s->worker.stats.unsettled += count;
	s->worker.moved = true;
	if (n->messages >= s->worker.milestone)
		worker_milestone(&s->worker);
}

/* The next of those to be sent again: its number and times are what they were. */
static pn_delivery_t *begin_again(struct sender *s, struct outgoing *o, int64_t ts_offset_ns)
{
	const struct unsettled *u = &o->again[o->again_next++];
	s->worker.stats.n.resent++;
	s->worker.moved = true;
	return begin_message(s, o, u->sn, u->sent_ns + ts_offset_ns, u->sent_ns);
}

/* What the clock of stamps shows more than that of sending times. */
static int64_t stamp_offset_ns(const struct sender *s)
{
	return s->options->clock == CLOCK_KIND_MONOTONIC ? 0 : clock_realtime_at_ns(0);
}

/* Begins a message, or goes on with it, as far as ROOM goes. The library moves all it holds of a
 * message whenever the peer's session window lets a part of it through: one that is long compared
 * to the window would take quadratic time. */
static void send_part(struct sender *s, struct outgoing *o, size_t room_bytes)
{
	int64_t now_ns = clock_monotonic_ns();
	worker_first(&s->worker, now_ns);
	if (!o->part) {
		o->part_again = left_again(o);
		o->part = o->part_again ? begin_again(s, o, stamp_offset_ns(s))
					: begin_message(s, o, o->next_sequence++,
						clock_stamp_ns(s->options->clock), now_ns);
		if (s->options->presettled) /* it is known by that, see outgoing_settle() */
			pn_delivery_set_context(o->part, o);
		o->part_bytes = 0;
		s->parts += !o->part_again;
	}
	size_t bytes = s->template.length - o->part_bytes;
	if (bytes > room_bytes)
		bytes = room_bytes;
	pn_link_send(o->link, s->template.bytes + o->part_bytes, bytes);
	o->part_bytes += bytes;
	bool complete = o->part_bytes == s->template.length;
	if (complete) {
		end_message(s, o, o->part);
		o->part = NULL;
		s->parts -= !o->part_again;
	}
	count_sent(s, o, complete && !o->part_again, bytes, now_ns);
}

static void send_again(struct sender *s, struct outgoing *o, uint64_t count)
{
	int64_t offset_ns = stamp_offset_ns(s);
	for (uint64_t i = 0; i < count; i++) {
		pn_delivery_t *d = begin_again(s, o, offset_ns);
		pn_link_send(o->link, s->template.bytes, s->template.length);
		end_message(s, o, d);
	}
	o->queued_bytes += count * s->template.length;
}

static void send_burst(struct sender *s, struct outgoing *o, uint64_t count)
{
	if (left_again(o)) {
		send_again(s, o, count);
		return;
	}
	struct clock_run stamp = {.kind = s->options->clock};
	struct clock_run sent = {.kind = CLOCK_KIND_MONOTONIC};
	int64_t began_ns = clock_monotonic_ns();
	worker_first(&s->worker, began_ns);
	if (s->options->presettled)
		for (uint64_t i = 0; i < count; i++)
			send_one(s, o, o->next_sequence++, clock_run_ns(&stamp), 0);
	else
		for (uint64_t i = 0; i < count; i++)
			send_one(s, o, o->next_sequence++, clock_run_ns(&stamp),
				clock_run_ns(&sent));
	count_sent(s, o, count, count * s->template.length, began_ns);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How many bytes may be put into the library's queue. Each time the peer's session window opens
 * the library walks all of the queue, so that the cost of a long one is quadratic: it is kept at
 * about two windows, whose size shows in what was let through. */
static size_t queue_room(struct outgoing *o, size_t queued_bytes)
{
	if (!queued_bytes && o->queued_bytes)
		o->window_bytes = least(2 * o->window_bytes, BURST_BYTES);
	else if (queued_bytes < o->queued_bytes)
		o->window_bytes = o->queued_bytes - queued_bytes;
	o->queued_bytes = queued_bytes;
	/* a window may be larger than what is handed over at a time: that of a long message */
	size_t limit_bytes = least(2 * o->window_bytes, BURST_BYTES);
	if (queued_bytes >= least(o->window_bytes, limit_bytes))
		return 0;
	return limit_bytes - queued_bytes;
}

/* Sends as much as there is room for, COUNT messages at most. */
static void send_some(struct sender *s, struct outgoing *o, uint64_t count, size_t room_bytes)
{
	bool small_window = o->window_bytes < BURST_BYTES;
	if (small_window && s->template.length > room_bytes)
		send_part(s, o, room_bytes);
	else if (s->template.length > room_bytes)
		send_burst(s, o, 1);
	else
		send_burst(s, o, least(count, room_bytes / s->template.length));
}

/* What stops it is asked for from the socket inwards. */
enum time_cause outgoing_turn(struct sender *s, struct outgoing *o, int64_t now_ns)
{
	const struct options *options = s->options;
	struct stats *stats = &s->worker.stats;
	int credit = pn_link_credit(o->link);
	uint64_t unsettled = (uint64_t)pn_link_unsettled(o->link);
	uint64_t again = left_again(o), count = again ? again : outgoing_left(s);

	if (credit > 0)
		end_stall(s, o, now_ns);
	if (pn_transport_pending(transport_of(o)) > 0)
		return TIME_SOCKET;
	size_t room_bytes = queue_room(o, pn_session_outgoing_bytes(pn_link_session(o->link)));
	if (!room_bytes || (o->queued_bytes && credit <= 0))
		return TIME_SESSION;
	if (o->part) {
		send_part(s, o, room_bytes);
		return TIME_BUSY;
	}
	if (!count) {
		pn_link_drained(o->link); /* if the peer asks for it, credit is of no more use */
		return unsettled ? TIME_SETTLEMENT : TIME_IDLE;
	}
	if (options->max_unsettled) {
		if (unsettled >= options->max_unsettled)
			return TIME_SETTLEMENT;
		count = least(count, options->max_unsettled - unsettled);
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
	if (o->part || left_again(o))
		outgoing_turn(s, o, now_ns);
}

/* ---- settle ---- */

/* The peer has settled a message that was not sent to its end: it gets no more of it. */
static void drop_part(struct sender *s, struct outgoing *o)
{
	pn_delivery_abort(o->part);
	o->part = NULL;
	if (o->part_again) {
		s->worker.stats.unsettled--;
		return;
	}
	s->parts--;
	s->worker.stats.n.messages++;
}

/* Counts how a delivery ended; false if it has not. */
static bool count_outcome(struct counters *n, uint64_t state, bool settled)
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

/* Delivery by delivery. */
void outgoing_settle(struct sender *s, struct outgoing *o, struct engine_batch *batch)
{
	struct stats *stats = &s->worker.stats;
	struct clock_run clock = {.kind = CLOCK_KIND_MONOTONIC};
	for (pn_delivery_t *d = engine_batch_first(batch); d; d = engine_batch_next(batch)) {
		if (!pn_delivery_get_context(d)) {
			/* the library takes it for a message of ours that uses up credit */
			engine_refuse(&s->worker.engine, o->link, "amqp:not-allowed",
				"the peer has sent a message to a sender");
			return; /* O is no more */
		}
		if (!pn_delivery_updated(d))
			continue; /* a second event of one that was handled */
		pn_delivery_clear(d);
		uint64_t state = pn_delivery_remote_state(d);
		if (!count_outcome(&stats->n, state, pn_delivery_settled(d)))
			continue;
		if (d == o->part) {
			drop_part(s, o);
			continue;
		}
		histogram_record(&stats->latency,
			clock_run_ns(&clock) - (int64_t)pn_delivery_get_context(d));
		pn_delivery_settle(d);
		stats->unsettled--;
	}
	s->worker.moved = true;
}
