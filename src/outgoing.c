#define _GNU_SOURCE
#include "outgoing.h"

#include "clock.h"
#include "fatal.h"
#include "sending.h"

#include <proton/session.h>
#include <proton/transport.h>
#include <stdlib.h>

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

/* ---- how much there is, and how much room ---- */

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

/* How many messages are unsettled, or unanswered. Those that are to be sent AGAIN are awaited
 * already. */
static uint64_t depth_of(const struct sender *s, struct outgoing *o, bool again)
{
	return s->questions.used && !again ? o->asking.awaited.depth
					   : (uint64_t)pn_link_unsettled(o->link);
}

/* ---- gates ---- */

/* What one turn of a link may send. Each gate says what stops it, BUSY if nothing does, and lowers
 * that to what it lets through. */
struct allowance {
	int64_t now_ns;
	int credit;
	bool again;        /* what was sent on a link that was lost comes first */
	uint64_t count;    /* messages */
	size_t room_bytes; /* in the library's queue */
};

/* Nothing is asked before it can be answered. */
static enum time_cause pass_answers(struct sender *s, struct outgoing *o, struct allowance *a)
{
	(void)a;
	return s->questions.used && !o->asking.attached ? TIME_IDLE : TIME_BUSY;
}

static enum time_cause pass_socket(struct sender *s, struct outgoing *o, struct allowance *a)
{
	(void)s, (void)a;
	return pn_transport_pending(transport_of(o)) > 0 ? TIME_SOCKET : TIME_BUSY;
}

/* Of the peer's session. */
static enum time_cause pass_window(struct sender *s, struct outgoing *o, struct allowance *a)
{
	(void)s;
	a->room_bytes = queue_room(o);
	return a->room_bytes && !(o->queued_bytes && a->credit <= 0) ? TIME_BUSY : TIME_SESSION;
}

/* When there is nothing to be sent, credit is of no more use; the peer may ask for it back. */
static enum time_cause pass_content(struct sender *s, struct outgoing *o, struct allowance *a)
{
	enum lines_state content = LINES_ENDED;
	if (a->count)
		content = a->again ? LINES_READY : content_peek(&s->content);
	if (content == LINES_READY)
		return TIME_BUSY;
	if (s->eos_sent == s->options->send_eos)
		pn_link_drained(o->link);
	s->starved = s->starved || content == LINES_WAITING;
	return content == LINES_ENDED && depth_of(s, o, a->again) ? TIME_SETTLEMENT : TIME_IDLE;
}

/* An open loop lets go what is due. A turn will come for the next. */
static enum time_cause pass_schedule(struct sender *s, struct outgoing *o, struct allowance *a)
{
	(void)o;
	if (!s->pacing.used || a->again)
		return TIME_BUSY;
	if (!s->pacing.backlog)
		engine_turn_by(&s->worker.engine, schedule_due_ns(&s->pacing.next));
	a->count = least(a->count, s->pacing.backlog);
	return a->count ? TIME_BUSY : TIME_PACING;
}

/* What the queue depth lets go. Batches are let go whole: while one that was let go is not sent to
 * its end, that is what is left of it. */
static enum time_cause pass_depth(struct sender *s, struct outgoing *o, struct allowance *a)
{
	if (s->options->presettled && !s->questions.used)
		return TIME_BUSY;
	uint64_t depth = depth_of(s, o, a->again);
	uint64_t left = depth < s->max_unsettled ? s->max_unsettled - depth : 0;
	if (s->options->batch > 1 && !s->pacing.used && !a->again) {
		if (!o->batch_left)
			o->batch_left = left - left % s->options->batch;
		left = o->batch_left;
	}
	a->count = least(a->count, left);
	return a->count ? TIME_BUSY : TIME_SETTLEMENT;
}

/* That there was a message and none for it is a stall. */
static enum time_cause pass_credit(struct sender *s, struct outgoing *o, struct allowance *a)
{
	if (a->credit > 0) {
		a->count = least(a->count, (uint64_t)a->credit);
		return TIME_BUSY;
	}
	s->worker.stats.n.blocked++;
	if (!o->stall_began_ns)
		o->stall_began_ns = o->stall_booked_ns = a->now_ns;
	book_stall(s, o, a->now_ns);
	return TIME_CREDIT;
}

/* From the socket inwards. They also do what being stopped there entails: those behind one that
 * stops do not run. */
static const struct gate {
	enum time_cause (*pass)(struct sender *s, struct outgoing *o, struct allowance *a);
	bool stops_begun; /* messages, too; they have passed the others */
} GATES[] = {
	{pass_answers, true},
	{pass_socket, true},
	{pass_window, true},
	{pass_content, false},
	{pass_schedule, false},
	{pass_depth, false},
	{pass_credit, false},
};
#define GATE_COUNT (sizeof GATES / sizeof *GATES)

/* ---- send ---- */

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

/* As far as the gates let it. */
enum time_cause outgoing_turn(struct sender *s, struct outgoing *o, int64_t now_ns)
{
	bool again = sending_has_again(o);
	struct allowance a = {.now_ns = now_ns,
		.credit = pn_link_credit(o->link),
		.again = again,
		.count = again ? o->again_end - o->again_next : outgoing_left(s)};
	if (a.credit > 0)
		end_stall(s, o, now_ns);
	for (size_t i = 0; i < GATE_COUNT; i++) {
		if (o->part.delivery && !GATES[i].stops_begun)
			continue;
		enum time_cause cause = GATES[i].pass(s, o, &a);
		if (cause != TIME_BUSY)
			return cause;
	}
	if (!again)
		a.count = least(a.count, s->worker.milestone - s->worker.stats.n.messages);
	send_some(s, o, a.count, a.room_bytes);
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
