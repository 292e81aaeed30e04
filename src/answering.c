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

/* The one of ours that has not been used for longest makes room. */
static void make_room(struct receiver *r)
{
	struct answer_link *l;
	if (r->answering.opened < OPENED_MAX)
		return;
	TAILQ_FOREACH_REVERSE (l, &r->answering.links, answer_links, next)
		if (l->ours && !l->part.owner) {
			drop(r, l);
			return;
		}
}

static struct answer_link *open_link(
	struct receiver *r, pn_connection_t *connection, const char *address)
{
	make_room(r);
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

/* The one for ADDRESS, on the message's own CONNECTION if there is one; else NULL. */
static struct answer_link *find_link(
	struct receiver *r, const pn_connection_t *connection, const char *address)
{
	struct answer_link *l, *found = NULL;
	TAILQ_FOREACH (l, &r->answering.links, next) {
		if (strcmp(l->address, address))
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

/* For messages of the form of IN's last one; NULL if they have no answer. Who comes to us says
 * where answers are to go by opening a link of its own. */
static struct answer_link *choose_link(struct receiver *r, struct incoming *in)
{
	const char *address = in->answer.address;
	pn_connection_t *connection = pn_session_connection(pn_link_session(in->link));
	if (!*address)
		return NULL;
	struct answer_link *l = find_link(r, connection, address);
	if (l && !l->link && clock_monotonic_ns() >= l->by_ns) {
		forget(r, l);
		l = NULL;
	}
	if (l || r->options->listen)
		return l;
	return open_link(r, connection, address);
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
	bool refused = opening && r->worker.phase == PHASE_RUNNING
		&& !(pn_connection_state(l->connection) & PN_REMOTE_CLOSED)
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
		if (pn_delivery_settled(d) || pn_delivery_remote_state(d) > PN_RECEIVED)
			answer_part_settle(&l->part, d);
	}
}

const struct engine_answers ANSWERING_LINKS = {
	.accepts = accepts, .attached = attached, .detached = detached, .deliveries = deliveries};

/* ---- answers ---- */

/* Bytes that are before IN's answer, or of it, and have not been sent. */
static size_t queued_bytes(const struct answer_link *l, const struct incoming *in)
{
	return l->part.owner == in ? answer_part_queued_bytes(&l->part)
				   : pn_session_outgoing_bytes(pn_link_session(l->link));
}

/* What stops IN's answer on this link; BUSY: nothing. */
static enum time_cause obstacle(const struct answer_link *l, const struct incoming *in)
{
	if (queued_bytes(l, in) >= ANSWER_PART_BYTES)
		return pn_transport_pending(pn_connection_transport(l->connection)) > 0
			? TIME_SOCKET
			: TIME_SESSION;
	if (l->part.owner)
		return l->part.owner == in ? TIME_BUSY : TIME_SESSION;
	if (!l->attached || pn_link_credit(l->link) <= 0)
		return TIME_CREDIT;
	return pn_link_unsettled(l->link) >= UNSETTLED_MAX ? TIME_SETTLEMENT : TIME_BUSY;
}

/* What is before the body. */
static void begin(struct answer_link *l, struct incoming *in, const char *bytes, size_t length)
{
	struct answer_form *f = &in->answer;
	answer_form_fill(f, &in->stamp, bytes);
	answer_part_begin(&l->part, l->link, in, l->sent++, f->head, f->head_bytes);
	l->part.at = in->stamp.body_section_at;
	l->part.end = answer_body_end(&in->stamp, bytes, length);
}

static bool count_unanswerable(struct receiver *r, const struct incoming *in)
{
	const char *address = in->answer.address;
	r->worker.stats.n.unanswerable++;
	tell(r, address, "",
		*address ? "the peer has no link for it"
			 : "a message has no reply-to that will do");
	return true;
}

/* The link for the answer to a message of IN's, or NULL. The same one goes on being used while
 * messages look alike, and by a message that is being answered. */
static struct answer_link *link_for(struct receiver *r, struct incoming *in, const char *bytes)
{
	if (in->answer_to && in->answer_to->part.owner == in)
		return in->answer_to;
	if (!answer_form_fits(&in->answer, &in->stamp)) {
		answer_form_make(&in->answer, &in->stamp, bytes);
		in->answer_to = NULL;
	}
	if (!in->answer_to)
		in->answer_to = choose_link(r, in);
	if (in->answer_to && !in->answer_to->link)
		in->answer_to = NULL; /* there may be one for the next message */
	return in->answer_to;
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
	struct answer_link *l = link_for(r, in, bytes);
	if (!l)
		return count_unanswerable(r, in);
	enum time_cause cause = obstacle(l, in);
	if (cause != TIME_BUSY)
		return wait_for(r, cause);
	if (!l->part.owner)
		begin(l, in, bytes, length);
	r->answered = true;
	if (!answer_part_send(&l->part, l->link, bytes, pn_delivery_settled(d)))
		return wait_for(r, TIME_SESSION);
	r->worker.stats.n.answers++;
	return true;
}

/* The link, if it is still there, goes on with those of others. */
void answering_abort(struct incoming *in)
{
	if (in->answer_to && in->answer_to->part.owner == in)
		answer_part_abort(&in->answer_to->part);
}

/* What the library counts: all that was begun and is not settled on both ends. */
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
