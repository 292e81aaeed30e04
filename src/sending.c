#define _GNU_SOURCE
#include "sending.h"

#include "clock.h"

#include <inttypes.h>
#include <proton/delivery.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- one message ---- */

/* The time of sending travels in the delivery's context, a pointer that is ours to use. */
_Static_assert(sizeof(void *) >= sizeof(int64_t), "a time must fit into a pointer");

static inline pn_delivery_t *begin_message(struct outgoing *o, const struct message_template *t,
	bool presettled, int64_t ts, int64_t sent_ns)
{
	uint64_t sn = o->next_sequence++;
	message_stamp(t, sn, ts);
	pn_delivery_t *d = pn_delivery(o->link, pn_dtag((const char *)&sn, sizeof sn));
	if (!presettled)
		pn_delivery_set_context(d, (void *)sent_ns);
	return d;
}

static inline void end_message(struct outgoing *o, pn_delivery_t *d, bool presettled)
{
	if (presettled)
		pn_delivery_settle(d);
	else
		pn_link_advance(o->link);
}

static inline void send_one(struct outgoing *o, const struct message_template *t, bool presettled,
	int64_t ts, int64_t sent_ns)
{
	pn_delivery_t *d = begin_message(o, t, presettled, ts, sent_ns);
	pn_link_send(o->link, t->bytes, t->length);
	end_message(o, d, presettled);
}

/* COUNT messages, BYTES of which went to the library since BEGAN. */
static void count_sent(struct sender *s, struct outgoing *o, uint64_t count, size_t bytes,
	uint64_t content_bytes, int64_t began_ns)
{
	struct counters *n = &s->worker.stats.n;
	n->call_ns += (uint64_t)(clock_monotonic_ns() - began_ns);
	o->queued_bytes += bytes;
	n->messages += count;
	n->content_bytes += content_bytes;
	if (!s->options->presettled)
		s->worker.stats.unsettled += count;
	s->worker.moved = true;
	if (n->messages >= s->worker.milestone)
		worker_milestone(&s->worker);
}

/* ---- messages that differ ---- */

/* The template becomes that of the group whose turn it is. */
static struct group enter_group(struct sender *s, struct outgoing *o)
{
	struct group group = groups_next(&o->groups, &s->groups);
	if (group.number != s->group) {
		snprintf(s->group_name, s->template.options.group_name_max + 1, "%s%" PRIu64,
			s->options->group_prefix, group.number);
		message_set_group(&s->template, s->group_name);
		s->group = group.number;
	}
	return group;
}

/* Makes the next message, all but its stamp. */
static void compose(struct sender *s, struct outgoing *o)
{
	struct group group = {0};
	if (s->groups.size)
		group = enter_group(s, o);
	if (s->content.varies)
		content_take(&s->content, &s->template);
	message_stamp_group(&s->template, (uint32_t)group.filled);
}

/* The one that was sent last. */
static void keep(struct sender *s, struct outgoing *o, char *own, size_t length, int64_t sent_ns)
{
	if (s->keeps)
		kept_put(&o->kept, o->next_sequence - 1,
			(struct kept_message){own, length, sent_ns});
}

/* The longest that it may be, before it is made. */
static size_t next_bytes(const struct sender *s)
{
	const struct message_template *t = &s->template;
	return s->content.varies ? t->reserve + content_next_bytes(&s->content) : t->length;
}

/* A batch begins when its first message is sent, or was due. */
static void note_batch(struct sender *s, struct outgoing *o, int64_t began_ns)
{
	if (batches_is_new(&o->batches, o->next_sequence))
		batches_begin(&o->batches, began_ns, s->options->tsc ? clock_ticks() : 0);
}

/* The time at which a message that is sent now begins: with a schedule, when it was due. */
static inline int64_t begin(struct sender *s, int64_t now_ns)
{
	return s->pacing.used ? pacing_take(&s->pacing) : now_ns;
}

/* The time stamp of the next message, which has begun then. */
static inline int64_t begin_stamp(
	struct sender *s, struct outgoing *o, struct clock_run *stamp, int64_t began_ns)
{
	if (s->times_batches)
		note_batch(s, o, began_ns);
	if (s->questions.used)
		asking_begin(s, o, o->next_sequence, began_ns);
	return s->pacing.used ? pacing_stamp_ns(&s->pacing, began_ns) : clock_run_ns(stamp);
}

/* The next message, which is composed, goes now. Returns when. */
static inline int64_t send_next(
	struct sender *s, struct outgoing *o, struct clock_run *stamp, struct clock_run *sent)
{
	int64_t sent_ns = clock_run_ns(sent);
	int64_t began_ns = begin(s, sent_ns);
	int64_t ts = begin_stamp(s, o, stamp, began_ns);
	send_one(o, &s->template, s->options->presettled, ts, sent_ns);
	pacing_count_sent(&s->pacing, began_ns, sent_ns);
	return sent_ns;
}

static void send_different(
	struct sender *s, struct outgoing *o, uint64_t count, size_t room_bytes, int64_t began_ns)
{
	struct clock_run stamp = {.kind = s->options->clock};
	struct clock_run sent = {.kind = CLOCK_KIND_MONOTONIC};
	const struct message_template *t = &s->template;
	uint64_t messages = 0, content_bytes = 0;
	size_t bytes = 0;
	do {
		compose(s, o);
		int64_t sent_ns = send_next(s, o, &stamp, &sent);
		keep(s, o, t->bytes, t->own_bytes, sent_ns);
		bytes += t->length;
		content_bytes += t->content_bytes;
	} while (++messages < count && content_peek(&s->content) == LINES_READY
		&& bytes + next_bytes(s) <= room_bytes);
	count_sent(s, o, messages, bytes, content_bytes, began_ns);
}

/* ---- messages that are alike ---- */

/* Those of which each is accounted for when it begins. */
static void send_noted(struct sender *s, struct outgoing *o, uint64_t count)
{
	struct clock_run stamp = {.kind = s->options->clock};
	struct clock_run sent = {.kind = CLOCK_KIND_MONOTONIC};
	for (uint64_t i = 0; i < count; i++)
		send_next(s, o, &stamp, &sent);
}

static void send_alike(struct sender *s, struct outgoing *o, uint64_t count, int64_t began_ns)
{
	const struct message_template *t = &s->template;
	struct clock_run stamp = {.kind = s->options->clock};
	struct clock_run sent = {.kind = CLOCK_KIND_MONOTONIC};
	if (s->notes)
		send_noted(s, o, count);
	else if (s->options->presettled)
		for (uint64_t i = 0; i < count; i++)
			send_one(o, t, true, clock_run_ns(&stamp), 0);
	else
		for (uint64_t i = 0; i < count; i++)
			send_one(o, t, false, clock_run_ns(&stamp), clock_run_ns(&sent));
	count_sent(s, o, count, count * t->length, count * t->content_bytes, began_ns);
}

/* The usual way is the short one. */
void sending_burst(struct sender *s, struct outgoing *o, uint64_t count, size_t room_bytes)
{
	int64_t began_ns = clock_monotonic_ns();
	worker_first(&s->worker, began_ns);
	if (s->alike) {
		uint64_t fitting = room_bytes / s->template.length;
		if (fitting < count)
			count = fitting ? fitting : 1;
		send_alike(s, o, count, began_ns);
	} else {
		send_different(s, o, count, room_bytes, began_ns);
	}
}

/* ---- messages that were sent before ---- */

/* Those that were settled after all are passed over. */
bool sending_has_again(struct outgoing *o)
{
	while (o->again_next != o->again_end && !kept_find(&o->kept, o->again_next).bytes)
		o->again_next++;
	return o->again_next != o->again_end;
}

/* What is kept of a message is its own; the rest is in the template. */
static size_t again_bytes(const struct sender *s, const struct kept_message *m)
{
	return m->length + s->template.length - s->template.own_bytes;
}

/* The next of them, M, begins. */
static pn_delivery_t *begin_again(
	struct sender *s, struct outgoing *o, const struct kept_message *m)
{
	uint64_t sn = o->again_next++;
	pn_delivery_t *d = pn_delivery(o->link, pn_dtag((const char *)&sn, sizeof sn));
	pn_delivery_set_context(d, (void *)m->sent_ns);
	s->worker.stats.n.resent++;
	s->worker.moved = true;
	return d;
}

/* The first is sent whatever its size. */
void sending_again(struct sender *s, struct outgoing *o, uint64_t count, size_t room_bytes)
{
	const struct message_template *t = &s->template;
	size_t bytes = 0;
	do {
		struct kept_message m = kept_find(&o->kept, o->again_next);
		if (bytes && bytes + again_bytes(s, &m) > room_bytes)
			break;
		pn_delivery_t *d = begin_again(s, o, &m);
		pn_link_send(o->link, m.bytes, m.length);
		pn_link_send(o->link, t->bytes + t->own_bytes, t->length - t->own_bytes);
		end_message(o, d, false);
		bytes += again_bytes(s, &m);
	} while (--count && sending_has_again(o));
	o->queued_bytes += bytes;
}

/* Messages to be sent again come first. */
size_t sending_next_bytes(const struct sender *s, struct outgoing *o)
{
	if (!sending_has_again(o))
		return next_bytes(s);
	struct kept_message m = kept_find(&o->kept, o->again_next);
	return again_bytes(s, &m);
}

/* ---- a message in parts ---- */

/* What is its own is copied: other links go on with the template, lines are overwritten, and the
 * peer may settle it at any time. */
static void begin_part(struct sender *s, struct outgoing *o, int64_t now_ns)
{
	const struct message_template *t = &s->template;
	o->part = (struct part){
		.rest = t->bytes + t->own_bytes,
		.rest_bytes = t->length - t->own_bytes,
		.again = sending_has_again(o),
	};
	if (o->part.again) {
		struct kept_message m = kept_find(&o->kept, o->again_next);
		o->part.letter = content_letter(m.bytes, m.length);
		o->part.delivery = begin_again(s, o, &m);
		return;
	}
	compose(s, o);
	struct clock_run stamp = {.kind = s->options->clock};
	o->part.began_ns = begin(s, now_ns);
	int64_t ts = begin_stamp(s, o, &stamp, o->part.began_ns);
	o->part.delivery = begin_message(o, t, s->options->presettled, ts, now_ns);
	if (s->options->presettled) /* it is known by that, see settling_take() */
		pn_delivery_set_context(o->part.delivery, (void *)now_ns);
	o->part.letter = content_copy(t);
	s->parts++;
}

/* The next LENGTH bytes of the part, or fewer. */
static size_t send_piece(struct outgoing *o, size_t length)
{
	struct part *p = &o->part;
	struct letter *letter = p->letter;
	const char *piece = letter->bytes + letter->reserve + p->done_bytes;
	size_t left = letter->length - p->done_bytes;
	if (p->done_bytes >= letter->length) {
		size_t rest_done = p->done_bytes - letter->length;
		piece = p->rest + rest_done;
		left = p->rest_bytes - rest_done;
	}
	if (length > left)
		length = left;
	pn_link_send(o->link, piece, length);
	p->done_bytes += length;
	return length;
}

static void end_part(struct sender *s, struct outgoing *o)
{
	struct letter *letter = o->part.letter;
	int64_t sent_ns = (int64_t)pn_delivery_get_context(o->part.delivery);
	if (!o->part.again) {
		keep(s, o, letter->bytes + letter->reserve, letter->length, sent_ns);
		pacing_count_sent(&s->pacing, o->part.began_ns, sent_ns);
	}
	end_message(o, o->part.delivery, s->options->presettled);
	free(sending_drop_part(s, o));
}

/* The library moves all it holds of a message whenever the peer's session window lets a part of it
 * through: one that is long compared to the window would take quadratic time. */
void sending_part(struct sender *s, struct outgoing *o, size_t room_bytes)
{
	int64_t now_ns = clock_monotonic_ns();
	worker_first(&s->worker, now_ns);
	if (!o->part.delivery)
		begin_part(s, o, now_ns);
	struct part *p = &o->part;
	size_t length = p->letter->length + p->rest_bytes, bytes = 0;
	while (p->done_bytes < length && bytes < room_bytes)
		bytes += send_piece(o, room_bytes - bytes);
	bool complete = p->done_bytes == length, counts = complete && !p->again;
	size_t content_bytes = counts ? p->letter->body_bytes : 0;
	if (complete)
		end_part(s, o);
	count_sent(s, o, counts, bytes, content_bytes, now_ns);
}

/* Its letter is the caller's. */
struct letter *sending_drop_part(struct sender *s, struct outgoing *o)
{
	struct letter *letter = o->part.letter;
	s->parts -= o->part.delivery && !o->part.again;
	o->part = (struct part){.delivery = NULL};
	return letter;
}

/* ---- others ---- */

/* It has the next number and a time, and is in no counter. */
void sending_eos(struct sender *s, struct outgoing *o)
{
	int64_t ts = clock_stamp_ns(s->options->clock);
	send_one(o, &s->eos, s->options->presettled, ts, SENDING_EOS_NS);
	o->queued_bytes += s->eos.length;
	o->eos_sent++;
	s->eos_sent++;
}
