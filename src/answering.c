#define _GNU_SOURCE
#include "answering.h"

#include "clock.h"
#include "fatal.h"
#include "incoming.h"

#include <inttypes.h>
#include <proton/condition.h>
#include <proton/disposition.h>
#include <proton/session.h>
#include <proton/terminus.h>
#include <proton/transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library has about 1 KiB for each answer that the peer has not settled. */
#define UNSETTLED_MAX 4096
/* Links: those that we open are closed when others are needed. */
#define OPENED_MAX   256
#define ACCEPTED_MAX 4096
/* An address that was refused may do later. */
#define REFUSED_NS NS_PER_S

/* ---- what has no answer ---- */

/* Once a run: whoever sends such messages sends many. */
static void tell(struct receiver *r, const char *address, const char *condition, const char *why)
{
	struct failure failure = {.code = EXIT_DONE};
	if (r->answering.told)
		return;
	r->answering.told = true;
	snprintf(failure.what, sizeof failure.what, "answering%s%s", *address ? " at " : "",
		address);
	snprintf(failure.condition, sizeof failure.condition, "%s", condition);
	snprintf(failure.description, sizeof failure.description, "%s", why);
	failure.description[strcspn(failure.description, "\n")] = '\0';
	worker_fail(&r->worker, &failure);
}

/* In the peer's words: of the link, or of its session. */
static void tell_refusal(struct receiver *r, const struct answer_link *l, pn_link_t *link)
{
	pn_condition_t *condition = pn_link_remote_condition(link);
	if (!pn_condition_is_set(condition))
		condition = pn_session_remote_condition(pn_link_session(link));
	const char *name = pn_condition_get_name(condition);
	const char *why = pn_condition_get_description(condition);
	tell(r, l->address, name ? name : "", why ? why : name ? "" : "refused by the peer");
}

/* ---- links ---- */

static pn_connection_t *connection_of(const struct incoming *in)
{
	return pn_session_connection(pn_link_session(in->link));
}

/* Nobody has made one yet. */
void answering_create(struct answering *a)
{
	*a = (struct answering){.waits = TIME_IDLE};
	TAILQ_INIT(&a->links);
}

static struct answer_link *add(
	struct receiver *r, pn_connection_t *connection, const char *address, bool ours)
{
	struct answering *a = &r->answering;
	struct answer_link *l = calloc(1, sizeof *l);
	if (!l || !(l->address = strdup(address)))
		fatal(EXIT_INTERNAL, "link for answers");
	l->connection = connection;
	l->ours = ours;
	*(ours ? &a->opened : &a->accepted) += 1;
	TAILQ_INSERT_HEAD(&a->links, l, next);
	return l;
}

/* Messages that would be answered by it look for another. */
static void forget(struct receiver *r, struct answer_link *l)
{
	struct answering *a = &r->answering;
	struct incoming *in;
	STAILQ_FOREACH (in, &r->links, next)
		if (in->answer_to == l)
			in->answer_to = NULL;
	*(l->ours ? &a->opened : &a->accepted) -= 1;
	TAILQ_REMOVE(&a->links, l, next);
	free(l->address);
	free(l);
}

/* Those that were refused are left. */
void answering_destroy(struct answering *a)
{
	struct answer_link *l;
	while ((l = TAILQ_FIRST(&a->links))) {
		TAILQ_REMOVE(&a->links, l, next);
		free(l->address);
		free(l);
	}
}

/* Ends it, or what is remembered of it. */
static void drop(struct receiver *r, struct answer_link *l)
{
	if (l->link)
		engine_detach(&r->worker.engine, l->link); /* calls detached() */
	else
		forget(r, l);
}

/* The one of ours that has not been used for longest makes room, unless an answer is under way on
 * each of them. */
static bool make_room(struct receiver *r)
{
	struct answer_link *l;
	if (r->answering.opened < OPENED_MAX)
		return true;
	TAILQ_FOREACH_REVERSE (l, &r->answering.links, answer_links, next)
		if (l->ours && !answer_part_is_used(&l->part)) {
			drop(r, l);
			return true;
		}
	return false;
}

static struct answer_link *open_link(
	struct receiver *r, pn_connection_t *connection, const char *address)
{
	struct answer_link *l = add(r, connection, address, true);
	char *name;
	if (asprintf(&name, "%s-answers-%" PRIu64, r->options->link_name, ++r->answering.named) < 0)
		fatal(EXIT_INTERNAL, "link for answers");
	l->by_ns = clock_monotonic_ns() + (int64_t)r->options->connect_timeout_ns;
	l->link = engine_open_answers(&r->worker.engine, connection, name, address, l);
	r->answering.opening++;
	free(name);
	return l;
}

/* The one for ADDRESS, on the message's own CONNECTION if there is one; else NULL. What has been
 * refused was on that connection: the next may lead to another host. */
static struct answer_link *find_link(
	struct receiver *r, const pn_connection_t *connection, const char *address)
{
	struct answer_link *l, *found = NULL;
	TAILQ_FOREACH (l, &r->answering.links, next) {
		bool usable =
			l->link ? !engine_is_gone(l->connection) : l->connection == connection;
		if (!usable || strcmp(l->address, address))
			continue;
		if (!found || l->connection == connection)
			found = l;
		if (l->connection == connection)
			break;
	}
	if (found) {
		TAILQ_REMOVE(&r->answering.links, found, next);
		TAILQ_INSERT_HEAD(&r->answering.links, found, next);
	}
	return found;
}

/* For messages of the form of IN's last one; NULL if they have no answer: what has come by a
 * connection that is gone has none by it. Who comes to us says where answers are to go by opening a
 * link of its own. False if there is no room for another. */
static bool choose_link(struct receiver *r, struct incoming *in)
{
	const char *address = in->answer.address;
	pn_connection_t *connection = connection_of(in);
	in->answer_to = NULL;
	if (!*address)
		return true;
	struct answer_link *l = find_link(r, connection, address);
	if (l && !l->link && clock_monotonic_ns() >= l->by_ns) {
		forget(r, l);
		l = NULL;
	}
	if (!l && !r->options->listen && !engine_is_gone(connection)) {
		if (!make_room(r))
			return false;
		l = open_link(r, connection, address);
	}
	in->answer_to = l;
	return true;
}

/* ---- what the engine tells ---- */

static bool refuse(pn_link_t *link, const char *condition, const char *why)
{
	pn_condition_set_name(pn_link_condition(link), condition);
	pn_condition_set_description(pn_link_condition(link), why);
	return false;
}

/* A peer's own link. It may ask for an address to be made. */
static bool accepts(void *self, pn_link_t *link)
{
	struct receiver *r = self;
	pn_terminus_t *source = pn_link_source(link);
	const char *address = pn_terminus_get_address(source);
	char *made = NULL;
	if (r->answering.accepted >= ACCEPTED_MAX)
		return refuse(link, "amqp:resource-limit-exceeded", "too many links for answers");
	if (pn_terminus_is_dynamic(source)) {
		if (asprintf(&made, "%s-answers-%" PRIu64, r->options->container_id,
			    ++r->answering.named)
			< 0)
			fatal(EXIT_INTERNAL, "address");
		pn_terminus_set_address(source, made);
		address = made;
	}
	if (!address || !*address)
		return refuse(link, "amqp:invalid-field", "a link for answers needs an address");
	struct answer_link *l =
		add(r, pn_session_connection(pn_link_session(link)), address, false);
	l->link = link;
	pn_link_set_context(link, l);
	free(made);
	return true;
}

static void attached(void *self, pn_link_t *link)
{
	struct receiver *r = self;
	struct answer_link *l = pn_link_get_context(link);
	r->answering.opening -= l->ours;
	l->attached = true;
}

/* That it was refused is remembered for a while, unless the connection is gone. */
static void detached(void *self, pn_link_t *link)
{
	struct receiver *r = self;
	struct answer_link *l = pn_link_get_context(link);
	bool opening = l->ours && !l->attached;
	r->answering.opening -= opening;
	if (pn_link_state(link) & PN_REMOTE_CLOSED)
		answer_part_abort_queued(link);
	bool refused = opening && r->worker.phase == PHASE_RUNNING && !engine_is_gone(l->connection)
		&& !worker_reconnects(&r->worker);
	if (!refused) {
		forget(r, l);
		return;
	}
	tell_refusal(r, l, link);
	l->link = NULL;
	l->attached = true;
	l->by_ns = clock_monotonic_ns() + REFUSED_NS;
}

/* Whether the peer has said how it ended. */
static bool has_outcome(pn_delivery_t *d)
{
	return pn_delivery_remote_state(d) > PN_RECEIVED;
}

/* The peer has settled answers. */
static void deliveries(void *self, pn_link_t *link, struct engine_batch *batch)
{
	struct receiver *r = self;
	for (pn_delivery_t *d = engine_batch_first(batch); d; d = engine_batch_next(batch)) {
		struct answer_link *l = pn_link_get_context(link);
		if (!l)
			continue;
		if (!pn_delivery_get_context(d)) {
			engine_refuse(&r->worker.engine, link, "amqp:not-allowed",
				"the peer has sent a message to a sender");
			return;
		}
		if (pn_delivery_settled(d) || has_outcome(d))
			answer_part_settle(&l->part, d);
	}
}

const struct engine_answers ANSWERING_LINKS = {
	.accepts = accepts, .attached = attached, .detached = detached, .deliveries = deliveries};

/* ---- answers ---- */

/* Bytes of answers that a session has, and has not sent. The library's number is higher for ever if
 * a link has gone that had settled ones, so that we count as well when it is high. */
static size_t session_bytes(const struct receiver *r, pn_session_t *session)
{
	const struct answer_link *l;
	size_t bytes = pn_session_outgoing_bytes(session), ours = 0;
	if (bytes < ANSWER_PART_BYTES)
		return bytes;
	TAILQ_FOREACH (l, &r->answering.links, next)
		if (l->link && pn_link_session(l->link) == session)
			ours += answer_part_link_bytes(&l->part, l->link);
	return ours < bytes ? ours : bytes;
}

/* What stops IN's answer on this link, before it or in its middle; BUSY: nothing. */
static enum time_cause obstacle(
	const struct receiver *r, const struct answer_link *l, const struct incoming *in)
{
	bool begun = answer_part_is_of(&l->part, in);
	if (answer_part_is_used(&l->part) && !begun)
		return TIME_SESSION;
	size_t queued_bytes = begun ? answer_part_queued_bytes(&l->part)
				    : session_bytes(r, pn_link_session(l->link));
	if (queued_bytes >= ANSWER_PART_BYTES)
		return pn_transport_pending(pn_connection_transport(l->connection)) > 0
			? TIME_SOCKET
			: TIME_SESSION;
	if (begun)
		return TIME_BUSY;
	if (!l->attached || pn_link_credit(l->link) <= 0)
		return TIME_CREDIT;
	return pn_link_unsettled(l->link) >= UNSETTLED_MAX ? TIME_SETTLEMENT : TIME_BUSY;
}

/* What is before the body. */
static void begin(struct answer_link *l, struct incoming *in, const char *bytes, size_t length)
{
	struct answer_form *f = &in->answer;
	answer_form_fill(f, &in->stamp, bytes);
	answer_part_begin(&l->part, l->link, in, l->next_tag++, f->head, f->head_bytes,
		in->stamp.body_section_at, answer_body_end(&in->stamp, bytes, length));
}

static bool count_unanswerable(struct receiver *r, const struct incoming *in)
{
	const char *address = in->answer.address, *why = "the peer has no link for it";
	if (!*address)
		why = "a message has no reply-to that will do";
	else if (!r->options->listen && engine_is_gone(connection_of(in)))
		why = "the message's connection is gone";
	r->worker.stats.n.unanswerable++;
	tell(r, address, "", why);
	return true;
}

/* The link for the answer to a message of IN's is IN's answer_to then, or NULL. The same one goes
 * on being used while messages look alike, and by a message that is being answered. False if the
 * message is to wait for a link. */
static bool find_answer_to(struct receiver *r, struct incoming *in, const char *bytes)
{
	if (in->answer_to && answer_part_is_of(&in->answer_to->part, in))
		return true;
	if (!answer_form_fits(&in->answer, &in->stamp)) {
		answer_form_make(&in->answer, &in->stamp, bytes);
		in->answer_to = NULL;
	}
	if (!in->answer_to && !choose_link(r, in))
		return false;
	if (in->answer_to && !in->answer_to->link)
		in->answer_to = NULL; /* there may be one for the next message */
	return true;
}

/* It is tried again from one turn to the next. */
static bool wait_for(struct receiver *r, enum time_cause cause)
{
	if (cause < r->answering.waits)
		r->answering.waits = cause;
	return false;
}

/* In parts, if it is long. */
bool answering_answer(
	struct receiver *r, struct incoming *in, pn_delivery_t *d, const char *bytes, size_t length)
{
	if (!find_answer_to(r, in, bytes))
		return wait_for(r, TIME_SESSION);
	struct answer_link *l = in->answer_to;
	if (!l)
		return count_unanswerable(r, in);
	enum time_cause cause = obstacle(r, l, in);
	if (cause != TIME_BUSY)
		return wait_for(r, cause);
	if (!answer_part_is_used(&l->part))
		begin(l, in, bytes, length);
	r->has_output = true;
	if (!answer_part_send(&l->part, l->link, bytes, pn_delivery_settled(d)))
		return wait_for(r, TIME_SESSION);
	r->worker.stats.n.answers++;
	return true;
}

/* The link, if it is still there, goes on with those of others. */
void answering_abort(struct incoming *in)
{
	if (in->answer_to && answer_part_is_of(&in->answer_to->part, in))
		answer_part_abort(&in->answer_to->part);
}

/* A refusal is remembered by the connection's address, which another may have then. */
void answering_leave(struct receiver *r, struct incoming *in)
{
	pn_connection_t *connection = connection_of(in);
	struct answer_link *l, *next;
	answering_abort(in);
	if (!engine_is_gone(connection))
		return;
	for (l = TAILQ_FIRST(&r->answering.links); l; l = next) {
		next = TAILQ_NEXT(l, next);
		if (!l->link && l->connection == connection)
			forget(r, l);
	}
}

/* Deliveries that we have not settled, which we do once the peer has; and those sent settled, until
 * they have left the library's queue. */
bool answering_flushed(const struct receiver *r)
{
	const struct answer_link *l;
	TAILQ_FOREACH (l, &r->answering.links, next)
		if (l->link && (pn_link_unsettled(l->link) > 0 || pn_link_queued(l->link) > 0))
			return false;
	return true;
}

/* What waits is tried again. A link that the peer says nothing about has been refused. */
void answering_turn(struct receiver *r, int64_t now_ns)
{
	struct answer_link *l, *next;
	r->answering.waits = TIME_IDLE;
	if (!r->answering.opening)
		return;
	for (l = TAILQ_FIRST(&r->answering.links); l; l = next) {
		next = TAILQ_NEXT(l, next);
		if (l->attached)
			continue;
		if (now_ns >= l->by_ns)
			engine_detach(&r->worker.engine, l->link);
		else
			engine_turn_by(&r->worker.engine, l->by_ns);
	}
}
