#define _GNU_SOURCE
#include "incoming.h"

#include "content_check.h"
#include "fatal.h"
#include "message.h"

#include <proton/disposition.h>
#include <proton/error.h>
#include <proton/session.h>
#include <stdlib.h>
#include <string.h>

/* How long the last messages, fewer than --ack-frequency, are kept unsettled when no more come:
 * the sender may be waiting for just that. */
#define ACK_DELAY_NS (20 * NS_PER_MS)

/* ---- credit ---- */

static void grant(struct receiver *r, struct incoming *in, uint32_t credit)
{
	if (!credit)
		return;
	if (r->limit != UINT64_MAX)
		r->wanted -= credit;
	pn_link_flow(in->link, (int)credit);
	r->has_output = true;
	r->worker.stats.n.grants++;
	r->worker.stats.n.granted += credit;
}

/* One that does not count towards the limit was taken. */
static void want_another(struct receiver *r, uint64_t messages)
{
	if (r->limit != UINT64_MAX)
		r->wanted += messages;
}

/* The sender's credit is what we have granted less what is on its way or queued here. */
void incoming_note_credit(struct receiver *r, const struct incoming *in)
{
	int credit = pn_link_remote_credit(in->link);
	uint32_t level = credit > 0 ? (uint32_t)credit : 0;
	if (level < r->worker.stats.credit_lowest)
		r->worker.stats.credit_lowest = level;
}

/* ---- come and go ---- */

/* A link that its peer has closed is over; so is one whose peer has come to us and has closed the
 * connection. Any other may come again. */
static bool is_over(const struct receiver *r, pn_link_t *link)
{
	pn_connection_t *connection = pn_session_connection(pn_link_session(link));
	return pn_link_state(link) & PN_REMOTE_CLOSED
		|| (r->options->listen && pn_connection_state(connection) & PN_REMOTE_CLOSED);
}

/* That of the link in whose place this one has come, or a new one. A peer that we connect to is
 * known by the name of our link: the next connection may lead to another host. */
static struct numbering *take_numbering(struct receiver *r, pn_link_t *link)
{
	struct incoming *in;
	STAILQ_FOREACH (in, &r->links, next) /* one may be over, and wait for its last messages */
		in->numbering->over = in->numbering->over || is_over(r, in->link);
	const char *container =
		pn_connection_remote_container(pn_session_connection(pn_link_session(link)));
	if (!r->options->listen || !container)
		container = "";
	return numbering_take(
		&r->numberings, container, pn_link_name(link), r->options->first_sequence);
}

/* Called once for each link, when traffic may begin. */
void incoming_start(struct receiver *r, struct incoming *in)
{
	in->granted = true;
	grant(r, in, credit_start(&in->credit, r->wanted));
}

/* If traffic may not begin yet, turn() grants the first credit. */
void incoming_attach(struct receiver *r, pn_link_t *link)
{
	const struct options *o = r->options;
	struct incoming *in = calloc(1, sizeof *in);
	if (!in || !(in->held = calloc(o->ack_frequency, sizeof *in->held)))
		fatal(EXIT_INTERNAL, "link");
	in->link = link;
	in->credit = (struct credit){.window = (uint32_t)o->credit,
		.low = (uint32_t)o->credit_low,
		.add = (uint32_t)o->credit_add};
	in->numbering = take_numbering(r, link);
	stamp_reader_create(&in->stamp);
	STAILQ_INSERT_TAIL(&r->links, in, next);
	pn_link_set_context(link, in);
	if (worker_may_start(&r->worker, clock_monotonic_ns()))
		incoming_start(r, in);
}

/* It is no more: what it was granted goes to others. */
void incoming_detach(struct receiver *r, pn_link_t *link)
{
	struct incoming *in = pn_link_get_context(link), *other;
	STAILQ_REMOVE(&r->links, in, incoming, next);
	want_another(r, in->credit.level);
	STAILQ_FOREACH (other, &r->links, next)
		if (other->granted && r->worker.phase == PHASE_RUNNING)
			grant(r, other, credit_grant(&other->credit, r->wanted));
	answering_leave(r, in);
	in->numbering->over = in->numbering->over || is_over(r, link);
	numbering_leave(&r->numberings, in->numbering);
	stamp_reader_destroy(&in->stamp);
	answer_form_free(&in->answer);
	free(in->held);
	free(in->part);
	free(in);
}

/* ---- settle ---- */

/* However few they are. */
void incoming_settle(struct receiver *r, struct incoming *in)
{
	for (uint64_t i = 0; i < in->held_count; i++) {
		pn_delivery_update(in->held[i], r->outcome);
		pn_delivery_settle(in->held[i]);
	}
	in->held_count = 0;
	in->settle_by_ns = 0;
	r->has_output = true;
}

/* When none has come for ACK_DELAY_NS. */
void incoming_settle_late(struct receiver *r, struct incoming *in, int64_t now_ns)
{
	if (!in->held_count)
		return;
	if (!in->settle_by_ns)
		in->settle_by_ns = now_ns + ACK_DELAY_NS;
	if (now_ns >= in->settle_by_ns)
		incoming_settle(r, in);
	else
		engine_turn_by(&r->worker.engine, in->settle_by_ns);
}

/* Done with a message that was read; the link goes on to the next. */
static inline void settle(struct receiver *r, struct incoming *in, pn_delivery_t *d)
{
	if (pn_delivery_settled(d)) {
		pn_delivery_settle(d);
	} else if (r->options->ack_frequency == 1) {
		pn_delivery_update(d, r->outcome);
		pn_delivery_settle(d);
		r->has_output = true;
	} else {
		pn_link_advance(in->link);
		in->held[in->held_count++] = d;
		in->settle_by_ns = 0;
		if (in->held_count == r->options->ack_frequency)
			incoming_settle(r, in);
	}
	credit_take(&in->credit);
}

/* ---- sequence ---- */

/* Where a message stands in its sender's numbering. False if it is to be ignored. */
static bool check_sequence(struct receiver *r, struct incoming *in, const struct stamp *stamp)
{
	struct counters *n = &r->worker.stats.n;
	if (!stamp->has_sn || stamp->sn > INT64_MAX) { /* a negative one is no number */
		n->no_sequence++;
		return true;
	}
	uint64_t skipped = in->numbering->sequence.skipped;
	switch (sequence_see(&in->numbering->sequence, stamp->sn)) {
	case SEQUENCE_IN_ORDER: return true;
	case SEQUENCE_GAP: n->skipped += in->numbering->sequence.skipped - skipped; return true;
	case SEQUENCE_REORDERED: n->reordered++; return true;
	case SEQUENCE_DUPLICATE: n->duplicated++; break;
	}
	return !r->options->ignore_duplicates;
}

/* ---- content ---- */

/* The run ends with a message. What is behind it is left alone. */
static void end_run(struct receiver *r, enum stop_reason reason)
{
	r->take_to = 0;
	worker_stop(&r->worker, reason);
}

/* Whether a message, PREFIX bytes of which are there, says that no more will come. */
static inline bool is_eos(
	const struct incoming *in, const char *bytes, size_t prefix, size_t length)
{
	size_t body_length;
	if (__builtin_expect(in->stamp.last.content_bytes != MESSAGE_EOS_BYTES, 1)
		|| prefix != length)
		return false;
	const char *body = stamp_body(&in->stamp, bytes, length, &body_length);
	return body && !memcmp(body, MESSAGE_EOS, MESSAGE_EOS_BYTES);
}

/* Whether a body is what its sender has made it, and that of this message. */
static bool is_intact(const struct stamp *stamp, const char *body, size_t length)
{
	struct content_check c;
	content_check_begin(&c);
	content_check_add(&c, body, length);
	return content_check_intact(&c)
		&& (!stamp->has_sn || stamp->sn == content_check_read_number(&c));
}

/* Checks, prints and saves a message, all of which is at BYTES. */
static void look_into(struct receiver *r, const struct incoming *in, const struct stamp *stamp,
	const char *bytes, size_t length)
{
	size_t body_length;
	const char *body = stamp_body(&in->stamp, bytes, length, &body_length);
	bool plain = body || text_body(&r->text, bytes, length, &body, &body_length);
	if (r->options->check_content && !(plain && is_intact(stamp, body, body_length)))
		r->worker.stats.n.corrupted++;
	if (printer_is_used(&r->printer))
		printer_put(&r->printer, bytes, length, body, body_length);
	if (printer_is_full(&r->printer))
		r->take_to = 0;
}

/* ---- a whole message ---- */

/* Accounts for one of which PREFIX bytes are at hand. False if it is to wait, because its answer
 * cannot be sent yet. */
static inline bool take(struct receiver *r, struct incoming *in, pn_delivery_t *d,
	const char *bytes, size_t prefix, size_t length, int64_t arrival_ns)
{
	struct stats *stats = &r->worker.stats;
	const struct stamp *stamp = stamp_read(&in->stamp, bytes, prefix, length);
	bool eos = is_eos(in, bytes, prefix, length);
	if (r->options->reply && !eos && !answering_answer(r, in, d, bytes, length))
		return false;
	bool counts = check_sequence(r, in, stamp);
	if (__builtin_expect(eos && counts, 0)) {
		counts = false;
		end_run(r, STOP_EOS); /* whoever else still sends, as qpid-receive does */
	}
	if (counts) {
		stats->n.messages++;
		stats->n.content_bytes += stamp->content_bytes;
		int64_t latency_ns;
		if (!stamp->has_ts)
			stats->n.no_timestamp++;
		else if (__builtin_sub_overflow(arrival_ns, stamp->ts, &latency_ns))
			histogram_record(&stats->timings[TIMING_LATENCY], INT64_MAX);
		else
			histogram_record(&stats->timings[TIMING_LATENCY], latency_ns);
		stats->n.redelivered += stamp->redelivered;
		if (__builtin_expect(r->looks, 0))
			look_into(r, in, stamp, bytes, length);
	} else {
		want_another(r, 1);
	}
	settle(r, in, d);
	grant(r, in, credit_grant(&in->credit, r->wanted));
	r->worker.moved = true;
	if (counts && stats->n.messages == r->worker.milestone) {
		worker_milestone(&r->worker);
		if (stats->n.messages == r->limit)
			end_run(r, STOP_MESSAGES);
	}
	return true;
}

/* ---- receive ---- */

/* A large message's memory is given back. */
static void forget_part(struct incoming *in)
{
	in->part_bytes = 0;
	in->arrived_ns = 0;
	if (in->part_room > BUFFER_BYTES) {
		free(in->part);
		in->part = NULL;
		in->part_room = 0;
	}
}

/* The sender has given the message up. */
static void drop_aborted(struct receiver *r, struct incoming *in, pn_delivery_t *d)
{
	r->worker.stats.n.aborted++;
	forget_part(in);
	want_another(r, 1);
	pn_delivery_settle(d);
	credit_take(&in->credit);
	grant(r, in, credit_grant(&in->credit, r->wanted));
}

/* Makes room for BYTES of the message. */
static void keep(struct incoming *in, size_t bytes)
{
	if (bytes <= in->part_room)
		return;
	size_t room = in->part_room ? in->part_room : STAMP_PREFIX_MAX;
	while (room < bytes)
		room *= 2;
	in->part = realloc(in->part, room);
	if (!in->part)
		fatal(EXIT_INTERNAL, "message");
	in->part_room = room;
}

/* Whether what stands before the body goes on behind what is kept, which is full; then there is
 * room for more of it, within bounds. */
static bool keep_head(struct incoming *in)
{
	if (in->part_room >= BUFFER_BYTES)
		return false;
	size_t head_bytes = stamp_head_bytes(in->part, in->part_room);
	if (head_bytes <= in->part_room)
		return false;
	keep(in, head_bytes < BUFFER_BYTES ? head_bytes : BUFFER_BYTES);
	return true;
}

/* The next GOT bytes of a message, unless some before them were left out. */
static void keep_piece(struct receiver *r, struct incoming *in, size_t got)
{
	size_t room;
	if (in->part_bytes > in->part_room)
		return;
	do {
		room = in->part_room - in->part_bytes;
		memcpy(in->part + in->part_bytes, r->buffer, got < room ? got : room);
	} while (got > room && keep_head(in));
}

/* Reads all there is of a message that comes in parts, or does not fit the buffer. Only its
 * beginning is kept, if nobody looks into it. It must be read to its end before it is settled: else
 * the library never gives back its share of the session window. False if the end has not come. */
static bool read_part(struct receiver *r, struct incoming *in, pn_delivery_t *d)
{
	ssize_t got;
	keep(in, STAMP_PREFIX_MAX);
	while ((got = pn_link_recv(in->link, r->buffer, sizeof r->buffer)) > 0) {
		if (r->whole)
			keep(in, in->part_bytes + (size_t)got);
		keep_piece(r, in, (size_t)got);
		in->part_bytes += (size_t)got;
	}
	return !pn_delivery_partial(d);
}

/* All of it has come, now or before: that its answer has to wait is none of its latency. */
static void take_parts(
	struct receiver *r, struct incoming *in, pn_delivery_t *d, struct clock_run *clock)
{
	size_t length = in->part_bytes;
	size_t prefix = length < in->part_room ? length : in->part_room;
	if (!in->arrived_ns)
		in->arrived_ns = clock_run_ns(clock);
	if (take(r, in, d, in->part, prefix, length, in->arrived_ns))
		forget_part(in);
}

/* The message in the buffer stays the link's next one, as one that has come in parts. */
static void hold(struct receiver *r, struct incoming *in, size_t length, int64_t arrival_ns)
{
	keep(in, length);
	memcpy(in->part, r->buffer, length);
	in->part_bytes = length;
	in->arrived_ns = arrival_ns;
}

/* The usual case is a whole message that fits the buffer. */
static inline void receive(
	struct receiver *r, struct incoming *in, pn_delivery_t *d, struct clock_run *clock)
{
	if (pn_link_current(in->link) != d || r->worker.stats.n.messages >= r->take_to)
		return; /* news of one that was taken before, or more than may be taken */
	size_t pending = pn_delivery_pending(d);
	if (__builtin_expect(
		    pn_delivery_partial(d) || pending > BUFFER_BYTES || in->part_bytes, 0)) {
		if (pn_delivery_aborted(d)) {
			drop_aborted(r, in, d);
		} else if (read_part(r, in, d)) {
			take_parts(r, in, d, clock);
		}
		return;
	}
	ssize_t got = pn_link_recv(in->link, r->buffer, pending);
	if (__builtin_expect(got == PN_ABORTED, 0)) {
		drop_aborted(r, in, d);
		return;
	}
	int64_t arrival_ns = clock_run_ns(clock);
	if (!take(r, in, d, r->buffer, pending, pending, arrival_ns))
		hold(r, in, pending, arrival_ns);
}

/* For messages that waited until they were due. */
void incoming_take(
	struct receiver *r, struct incoming *in, pn_delivery_t *d, struct clock_run *clock)
{
	receive(r, in, d, clock);
}

/* For messages that are taken as they come. */
void incoming_take_all(struct receiver *r, struct incoming *in, struct engine_batch *batch)
{
	struct clock_run clock = {.kind = r->options->clock};
	r->has_output = false;
	for (pn_delivery_t *d = engine_batch_first(batch); d; d = engine_batch_next(batch))
		receive(r, in, d, &clock);
	batch->has_output = r->has_output;
}
