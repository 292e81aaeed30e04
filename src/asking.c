#define _GNU_SOURCE
#include "asking.h"

#include "clock.h"
#include "encoding.h"
#include "fatal.h"
#include "mix.h"
#include "outgoing.h"
#include "section.h"

#include <proton/disposition.h>
#include <proton/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Answers are granted as many as precv grants messages by default, or as may be awaited at a time
 * if that is more. */
#define CREDIT_LEAST 1000

/* ---- what is asked ---- */

/* An address that no other run has, and that the name of a queue may be: that of the messages, and
 * our container's id, which names host and process. */
static char *own_address(const struct options *o)
{
	const char *address = o->engine.address ? o->engine.address : "";
	char *own;
	if (asprintf(&own, "%s%s%s", address, *address ? "-" : "", o->container_id) < 0)
		fatal(EXIT_INTERNAL, "address");
	return own;
}

/* Answers to another run, that wait at the same address, must not be taken for ours. */
void asking_create(struct questions *q, const struct options *o)
{
	*q = (struct questions){.used = o->round_trip};
	if (!q->used)
		return;
	q->reply_to = o->reply_to ? strdup(o->reply_to) : own_address(o);
	if (!q->reply_to)
		fatal(EXIT_INTERNAL, "address");
	uint64_t seed = mix_seed(clock_realtime_ns(), getpid());
	snprintf(q->prefix, sizeof q->prefix, "%08x-", (unsigned)(mix_next(&seed) >> 32));
}

/* Frees what create allocated. */
void asking_destroy(struct questions *q)
{
	free(q->reply_to);
	q->reply_to = NULL;
}

/* ---- links ---- */

/* Half of it comes when half is used. */
static struct credit credit_for(uint64_t max_unsettled)
{
	uint32_t window = CREDIT_LEAST;
	if (max_unsettled > window)
		window = max_unsettled < CREDIT_MAX ? (uint32_t)max_unsettled : CREDIT_MAX;
	return (struct credit){.window = window, .low = window / 2, .add = window - window / 2};
}

/* Its name is that of the other one, which goes in the other direction. */
void asking_open(struct sender *s, struct outgoing *o)
{
	struct asking *a = &o->asking;
	int64_t timeout_ns = (int64_t)s->options->connect_timeout_ns;
	pn_connection_t *connection = pn_session_connection(pn_link_session(o->link));
	if (!a->head) {
		a->head = malloc(2 * ASKING_HEAD_BYTES);
		if (!a->head)
			fatal(EXIT_INTERNAL, "link");
		a->seen = a->head + ASKING_HEAD_BYTES;
	}
	a->attached = false;
	a->attach_by_ns = clock_monotonic_ns() + timeout_ns;
	a->part_bytes = 0;
	a->credit = credit_for(s->max_unsettled);
	s->questions.opening++;
	a->link = engine_open_answers(
		&s->worker.engine, connection, pn_link_name(o->link), s->questions.reply_to, o);
}

/* That O has one. */
static void forget_link(struct sender *s, struct outgoing *o)
{
	s->questions.opening -= o->asking.link && !o->asking.attached;
	o->asking.link = NULL;
	o->asking.attached = false;
}

/* What was settled is not sent once more; no more than `max_unsettled` is awaited at a time. */
static void give_up(struct sender *s, struct outgoing *o)
{
	awaited_give_up(&o->asking.awaited, s->max_unsettled);
}

/* Answers to what is sent once more may come by the next one. */
void asking_lose(struct sender *s, struct outgoing *o)
{
	pn_link_t *link = o->asking.link;
	forget_link(s, o);
	give_up(s, o);
	if (link)
		engine_detach(&s->worker.engine, link);
}

/* Whatever is still awaited. */
void asking_free(struct asking *a)
{
	awaited_free(&a->awaited);
	free(a->head);
}

/* A peer that says nothing at all is not waited for for ever. */
void asking_turn(struct sender *s, int64_t now_ns)
{
	struct outgoing *o;
	if (!s->questions.opening)
		return;
	STAILQ_FOREACH (o, &s->links, next) {
		struct asking *a = &o->asking;
		if (a->attached || !a->link)
			continue;
		engine_turn_by(&s->worker.engine, a->attach_by_ns);
		if (now_ns >= a->attach_by_ns) {
			engine_refuse(&s->worker.engine, a->link, "amqp:connection:forced",
				"no attached link for answers within the connect timeout");
			return; /* O is no more; the next one has its turn */
		}
	}
}

static void attached(void *self, pn_link_t *link)
{
	struct sender *s = self;
	struct outgoing *o = pn_link_get_context(link);
	s->questions.opening--;
	o->asking.attached = true;
	pn_link_flow(link, (int)credit_start(&o->asking.credit, UINT64_MAX));
}

/* Without it the other link is of no use. */
static void detached(void *self, pn_link_t *link)
{
	struct sender *s = self;
	struct outgoing *o = pn_link_get_context(link);
	if (o->asking.link != link)
		return; /* the other one was first */
	forget_link(s, o);
	engine_detach(&s->worker.engine, o->link);
}

/* ---- messages ---- */

/* A pre-settled message is settled. */
void asking_begin(struct sender *s, struct outgoing *o, uint64_t number, int64_t since_ns)
{
	awaited_add(&o->asking.awaited, number, since_ns, s->options->presettled);
}

/* Its number will be another's. */
void asking_drop(struct outgoing *o, uint64_t number)
{
	struct awaited_message *m = awaited_find(&o->asking.awaited, number);
	if (m)
		awaited_remove(&o->asking.awaited, m);
}

/* Of any link. */
bool asking_may_begin(const struct sender *s)
{
	const struct outgoing *o;
	STAILQ_FOREACH (o, &s->links, next)
		if (!s->questions.used || o->asking.attached)
			return true;
	return false;
}

/* On any link. */
bool asking_is_awaited(const struct sender *s)
{
	const struct outgoing *o;
	STAILQ_FOREACH (o, &s->links, next)
		if (o->asking.awaited.depth)
			return true;
	return false;
}

/* If they come after all, they count. */
void asking_give_up(struct sender *s)
{
	struct outgoing *o;
	STAILQ_FOREACH (o, &s->links, next)
		give_up(s, o);
}

/* One that is answered is done with. */
void asking_settle(struct outgoing *o, uint64_t number, bool refused)
{
	struct awaited_message *m = awaited_find(&o->asking.awaited, number);
	if (!m)
		return;
	m->settled = true;
	if (refused || m->answered)
		awaited_remove(&o->asking.awaited, m);
}

/* ---- answers ---- */

/* The field with this index, from 0 on, of a section that is a list. */
static bool read_field(
	const struct encoding_value *section, unsigned index, struct encoding_value *v)
{
	struct encoding_cursor c = encoding_enter(section);
	if (section->kind != ENCODING_LIST)
		return false;
	for (unsigned i = 0; i <= index; i++)
		if (!encoding_read(&c, v) || v->kind == ENCODING_DESCRIBED)
			return false;
	return true;
}

/* The correlation id of the answer in the head, if it may be one of ours; NULL: it is none. */
static const char *find_id(const struct asking *a)
{
	enum { CORRELATION_ID = 5 };
	struct encoding_cursor c = {a->head, a->head + a->part_bytes};
	struct encoding_value v;
	uint64_t descriptor;
	while (encoding_read_section(&c, &descriptor, &v) && descriptor <= SECTION_PROPERTIES)
		if (descriptor == SECTION_PROPERTIES)
			return read_field(&v, CORRELATION_ID, &v) && v.length == ASKING_ID
					&& (v.kind == ENCODING_STRING || v.kind == ENCODING_BINARY)
				? v.bytes
				: NULL;
	return NULL;
}

/* The same, without decoding if all before it is as in the last answer. */
static const char *look_for_id(struct asking *a)
{
	if (a->id_at && a->part_bytes >= a->id_at + ASKING_ID
		&& !memcmp(a->head, a->seen, a->id_at))
		return a->head + a->id_at;
	const char *id = find_id(a);
	a->id_at = id ? (size_t)(id - a->head) : 0;
	memcpy(a->seen, a->head, a->id_at);
	return id;
}

/* The message that was asked, if it is still to be answered. */
static struct awaited_message *find_question(struct sender *s, struct asking *a)
{
	const char *id = look_for_id(a);
	uint64_t number;
	if (!id || memcmp(id, s->questions.prefix, ASKING_PREFIX)
		|| !hex_load(id + ASKING_PREFIX, &number))
		return NULL;
	struct awaited_message *m = awaited_find(&a->awaited, number);
	return m && !m->answered ? m : NULL;
}

/* An answer has come. */
static void count(struct sender *s, struct asking *a, int64_t now_ns)
{
	struct stats *stats = &s->worker.stats;
	struct awaited_message *m = find_question(s, a);
	s->worker.moved = true;
	if (!m) {
		stats->n.unmatched++;
		return;
	}
	stats->n.answered++;
	histogram_record(&stats->timings[TIMING_ROUND_TRIP], now_ns - m->since_ns);
	m->answered = true;
	if (m->settled)
		awaited_remove(&a->awaited, m);
}

/* All that has come of it; what is behind the head is dropped. */
static void read_answer(struct asking *a, pn_delivery_t *d)
{
	char rest[ASKING_HEAD_BYTES];
	while (pn_delivery_pending(d) > 0) {
		size_t room = ASKING_HEAD_BYTES - a->part_bytes;
		ssize_t got = room ? pn_link_recv(a->link, a->head + a->part_bytes, room)
				   : pn_link_recv(a->link, rest, sizeof rest);
		if (got <= 0)
			break;
		if (room)
			a->part_bytes += (size_t)got;
	}
}

/* Of a delivery that has come to its end: the next one may be read. */
static void settle(struct asking *a, pn_delivery_t *d)
{
	if (!pn_delivery_settled(d))
		pn_delivery_update(d, PN_ACCEPTED);
	pn_delivery_settle(d);
	a->part_bytes = 0;
	credit_take(&a->credit);
	uint32_t credit = credit_grant(&a->credit, UINT64_MAX);
	if (credit)
		pn_link_flow(a->link, (int)credit);
}

/* An answer that was given up is none. */
static void take(struct sender *s, struct asking *a, pn_delivery_t *d, struct clock_run *clock)
{
	if (pn_link_current(a->link) != d)
		return; /* news of one that was taken before */
	bool aborted = pn_delivery_aborted(d);
	if (!aborted)
		read_answer(a, d);
	if (!aborted && pn_delivery_partial(d))
		return;
	if (!aborted)
		count(s, a, clock_run_ns(clock));
	settle(a, d);
}

static void deliveries(void *self, pn_link_t *link, struct engine_batch *batch)
{
	struct outgoing *o = pn_link_get_context(link);
	struct clock_run clock = {.kind = CLOCK_KIND_MONOTONIC};
	for (pn_delivery_t *d = engine_batch_first(batch); d; d = engine_batch_next(batch))
		if (o && o->asking.link == link)
			take(self, &o->asking, d, &clock);
}

const struct engine_answers ASKING_LINKS = {
	.vital = true, .attached = attached, .detached = detached, .deliveries = deliveries};
