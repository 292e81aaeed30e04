#define _GNU_SOURCE
#include "endpoints.h"

#include "answer_links.h"
#include "connections.h"
#include "security.h"

#include <proton/condition.h>
#include <proton/error.h>
#include <proton/session.h>
#include <proton/terminus.h>
#include <proton/transport.h>
#include <stdlib.h>
#include <string.h>

/* A credit below this cannot come from messages that are on their way. */
#define CREDIT_OVERFLOW (-(1 << 30))

/* In a link's record: that the peer has granted credit. */
PN_HANDLE(HAS_HAD_CREDIT)

static pn_connection_t *connection_of(pn_link_t *link)
{
	return pn_session_connection(pn_link_session(link));
}

/* It has no limit if none is asked for. */
void endpoints_open_session(struct engine *e, pn_session_t *session)
{
	if (e->options->session_window_bytes)
		pn_session_set_incoming_capacity(session, e->options->session_window_bytes);
	pn_session_open(session);
}

/* Sent when there is a transport. The scope of an address is of use to this host alone. */
void endpoints_open(struct engine *e, pn_connection_t *connection)
{
	const char *host = e->options->host;
	pn_connection_set_container(connection, e->options->container_id);
	pn_connection_set_hostname(connection, strndupa(host, strcspn(host, "%")));
	security_identify(e->options->security, connection);
	pn_connection_open(connection);
	pn_session_t *session = pn_session(connection);
	endpoints_open_session(e, session);
	pn_link_t *link;
	if (e->options->sender) {
		link = pn_sender(session, e->options->link_name);
		pn_terminus_set_address(pn_link_target(link), e->options->address);
		pn_link_set_snd_settle_mode(
			link, e->options->presettled ? PN_SND_SETTLED : PN_SND_UNSETTLED);
	} else {
		link = pn_receiver(session, e->options->link_name);
		pn_terminus_set_address(pn_link_source(link), e->options->address);
	}
	pn_link_open(link);
}

/* Whether LINK, which the peer has left, stays for the sake of what has come by it. */
static bool lingers(struct engine *e, pn_link_t *link)
{
	if (e->closing || answer_links_is(e, link) || !pn_link_get_context(link)
		|| !e->callbacks->holds(e->context, link))
		return false;
	for (size_t i = 0; i < e->lingering_count; i++)
		if (e->lingering[i] == link)
			return true;
	size_t size = (e->lingering_count + 1) * sizeof *e->lingering;
	e->lingering = realloc(e->lingering, size);
	if (!e->lingering)
		fatal(EXIT_INTERNAL, "links");
	e->lingering[e->lingering_count++] = link;
	return true;
}

static void stop_lingering(struct engine *e, const pn_link_t *link)
{
	for (size_t i = 0; i < e->lingering_count; i++)
		if (e->lingering[i] == link)
			e->lingering[i] = e->lingering[--e->lingering_count];
}

static void close_link(struct engine *e, pn_link_t *link)
{
	if (answer_links_is(e, link)) {
		answer_links_close(e, link);
		return;
	}
	bool attached = pn_link_get_context(link);
	stop_lingering(e, link);
	if (pn_link_state(link) & PN_LOCAL_ACTIVE)
		pn_link_close(link);
	if (attached) {
		e->callbacks->detached(e->context, link);
		pn_link_set_context(link, NULL);
		pn_decref(link);
	}
}

/* All links of a connection, or those of one SESSION if it is not NULL. */
static void close_links(struct engine *e, pn_connection_t *connection, pn_session_t *session)
{
	for (pn_link_t *l = pn_link_head(connection, 0), *next; l; l = next) {
		next = pn_link_next(l, 0);
		if ((!session || pn_link_session(l) == session) && !lingers(e, l))
			close_link(e, l);
	}
}

/* A connection that is gone frees its links, so it stays until none of them lingers. */
static void release(struct engine *e, pn_connection_t *connection)
{
	for (size_t i = 0; i < e->lingering_count; i++)
		if (connection_of(e->lingering[i]) == connection)
			return;
	pn_connection_release(connection);
}

/* Nothing is left to be taken from them, or nothing will be. */
void endpoints_finish(struct engine *e)
{
	for (size_t i = 0; i < e->lingering_count;) {
		pn_link_t *link = e->lingering[i];
		if (!e->closing && e->callbacks->holds(e->context, link)) {
			i++;
			continue;
		}
		pn_connection_t *connection = connection_of(link);
		bool unbound = !pn_connection_transport(connection);
		close_link(e, link);
		pn_link_free(link);
		if (unbound)
			release(e, connection);
		connections_lose(e);
	}
}

/* Everything, in the order link, connection. */
void endpoints_close(struct engine *e)
{
	endpoints_finish(e);
	for (size_t i = 0; i < e->connection_count; i++) {
		close_links(e, e->connections[i].connection, NULL);
		pn_connection_close(e->connections[i].connection);
	}
}

static void connection_opened(struct engine *e, pn_connection_t *connection)
{
	e->opened = true;
	if (pn_connection_state(connection) & PN_LOCAL_UNINIT) {
		pn_connection_set_container(connection, e->options->container_id);
		pn_connection_open(connection);
	}
}

static void session_opened(struct engine *e, pn_session_t *session)
{
	if (pn_session_state(session) & PN_LOCAL_UNINIT)
		endpoints_open_session(e, session);
}

/* A link that the peer asks for. Only the other end of what we are makes sense. */
static bool accept_link(struct engine *e, pn_link_t *link)
{
	if (pn_link_is_sender(link) != e->options->sender) {
		pn_condition_t *condition = pn_link_condition(link);
		pn_condition_set_name(condition, "amqp:not-implemented");
		pn_condition_set_description(condition,
			e->options->sender ? "this is a sender: attach a receiver"
					   : "this is a receiver: attach a sender; only with "
					     "--reply can answers be had from it");
		pn_link_open(link);
		pn_link_close(link);
		return false;
	}
	pn_terminus_copy(pn_link_source(link), pn_link_remote_source(link));
	pn_terminus_copy(pn_link_target(link), pn_link_remote_target(link));
	if (e->options->sender)
		pn_link_set_snd_settle_mode(
			link, e->options->presettled ? PN_SND_SETTLED : PN_SND_UNSETTLED);
	else
		pn_link_set_snd_settle_mode(link, pn_link_remote_snd_settle_mode(link));
	pn_link_open(link);
	return true;
}

/* The peer refuses a link by attaching it without the terminus that was asked for; its detach,
 * which says why, follows. The library does not tell an absent source from one without address,
 * which is no refusal: unless the detach is here already, it is taken for that. */
bool endpoints_is_refused(pn_link_t *link)
{
	if (pn_link_is_sender(link))
		return pn_terminus_get_type(pn_link_remote_target(link)) == PN_UNSPECIFIED;
	return pn_terminus_get_type(pn_link_remote_source(link)) == PN_UNSPECIFIED
		&& pn_link_state(link) & PN_REMOTE_CLOSED;
}

/* Its connection stays. */
void endpoints_detach(struct engine *e, pn_link_t *link)
{
	close_link(e, link);
	if (!answer_links_is(e, link))
		connections_lose(e);
}

/* Its connection ends as well: what a peer goes on to send on a link that it should not send on
 * would be kept by the library. */
static void abort_connection(struct engine *e, pn_connection_t *connection, pn_condition_t *why)
{
	pn_condition_copy(pn_connection_condition(connection), why);
	close_links(e, connection, NULL);
	pn_connection_close(connection);
	socket_abort(pn_connection_transport(connection));
}

/* Its connection is told; it stays, if the link is no answer link. */
void endpoints_refuse(struct engine *e, pn_link_t *link, const char *condition, const char *why)
{
	pn_condition_t *ours = pn_link_condition(link);
	pn_condition_set_name(ours, condition);
	pn_condition_set_description(ours, why);
	connections_fail(e, connection_of(link), "link of ", ours, false);
	if (answer_links_is(e, link))
		abort_connection(e, connection_of(link), ours);
	else
		endpoints_detach(e, link);
}

static void link_opened(struct engine *e, pn_link_t *link)
{
	if (e->closing)
		return;
	bool ours = !(pn_link_state(link) & PN_LOCAL_UNINIT);
	if (answer_links_is(e, link) && (ours || e->answers->accepts)) {
		answer_links_opened(e, link);
		return;
	}
	if (pn_link_get_context(link)) { /* the library does not notice each second attach */
		endpoints_refuse(e, link, "amqp:not-allowed",
			"the peer has attached a link that was attached");
		return;
	}
	if (ours ? endpoints_is_refused(link) : !accept_link(e, link))
		return;
	struct engine_connection *c = connections_find(e, connection_of(link));
	if (!c || c->failed)
		return;
	connections_attached(e, c);
	/* Deliveries count as references to their link. Without one of ours, the library would run
	 * the link's finalizer, and keep the link after all, with each delivery that comes and goes
	 * alone: 700 instructions. */
	pn_incref(link);
	e->callbacks->attached(e->context, link);
}

static void link_closed(struct engine *e, pn_link_t *link)
{
	if (answer_links_is(e, link)) {
		answer_links_closed(e, link);
		return;
	}
	pn_condition_t *condition = pn_link_remote_condition(link);
	bool unexpected = !pn_link_get_context(link) && !e->options->listen;
	if (pn_condition_is_set(condition) || unexpected)
		connections_fail(e, connection_of(link), "link of ", condition, false);
	if (lingers(e, link))
		return;
	close_link(e, link);
	pn_link_free(link);
	connections_lose(e);
}

/* The library counts credit as an int: a grant of 2^31 or more reads as less than none, and it
 * would never send. Negative credit comes also from a grant that was taken back while messages were
 * on their way, but not as much, and not before any was granted. */
static void credit_granted(struct engine *e, pn_link_t *link)
{
	if (!pn_link_is_sender(link) || !pn_link_get_context(link))
		return;
	pn_record_t *record = pn_link_attachments(link);
	int credit = pn_link_credit(link);
	bool first = !pn_record_has(record, HAS_HAD_CREDIT);
	if (credit < CREDIT_OVERFLOW || (credit < 0 && first))
		endpoints_refuse(e, link, "amqp:not-implemented",
			"the peer has granted more than 2147483647 messages");
	else if (credit > 0 && first)
		pn_record_def(record, HAS_HAD_CREDIT, PN_VOID);
}

/* Of the program's own kind. */
static bool has_link(struct engine *e, pn_connection_t *connection)
{
	for (pn_link_t *l = pn_link_head(connection, 0); l; l = pn_link_next(l, 0))
		if (pn_link_get_context(l) && !answer_links_is(e, l))
			return true;
	return false;
}

/* A session in which there were answer links alone is no loss. */
static void session_closed(struct engine *e, pn_session_t *session)
{
	pn_connection_t *connection = pn_session_connection(session);
	pn_condition_t *condition = pn_session_remote_condition(session);
	bool of_answers = answer_links_owns(session);
	if (pn_condition_is_set(condition) && (!of_answers || e->answers->vital))
		connections_fail(e, connection, "session of ", condition, false);
	close_links(e, connection, session);
	pn_session_close(session);
	if (of_answers)
		pn_session_free(session);
	else if (!has_link(e, connection))
		connections_lose(e);
}

/* With its link, or before there was one. */
static bool is_in_use(struct engine *e, pn_connection_t *connection)
{
	struct engine_connection *c = connections_find(e, connection);
	return (c && !c->attached) || has_link(e, connection);
}

/* A peer that is being shut down says amqp:connection:forced, or nothing; one to whom the bytes
 * between us have come to an end within a frame, amqp:connection:framing-error. */
static void connection_closed(struct engine *e, pn_connection_t *connection)
{
	pn_condition_t *condition = pn_connection_remote_condition(connection);
	const char *name = pn_condition_get_name(condition);
	if (name)
		connections_fail(e, connection, "", condition,
			!strcmp(name, "amqp:connection:forced")
				|| !strcmp(name, "amqp:connection:framing-error"));
	else if (e->options->reconnect_attempts && is_in_use(e, connection))
		connections_fail(e, connection, "", NULL, true);
	close_links(e, connection, NULL);
	pn_connection_close(connection);
}

/* Whatever has failed, nothing more is to be expected of its socket: what we would still like to
 * say is written if that needs no waiting. */
static void transport_failed(struct engine *e, pn_transport_t *transport)
{
	pn_connection_t *connection = pn_transport_connection(transport);
	if (connection)
		connections_fail(e, connection, "", pn_transport_condition(transport), true);
	socket_abort(transport);
}

/* Nothing more is read. Of a frame of a kind that it does not know, and of an end within a frame,
 * the library says nothing, and the other direction stays open. */
static void input_ended(struct engine *e, pn_transport_t *transport)
{
	pn_connection_t *connection = pn_transport_connection(transport);
	pn_condition_t *condition = pn_transport_condition(transport);
	if (!connection || (pn_connection_state(connection) & PN_REMOTE_CLOSED))
		return;
	if (!pn_condition_is_set(condition)) {
		pn_condition_set_name(condition, "amqp:connection:framing-error");
		pn_condition_set_description(
			condition, "an unknown frame, or an end within a frame");
	}
	transport_failed(e, transport);
}

/* The socket is gone. */
static void transport_closed(struct engine *e, pn_transport_t *transport)
{
	pn_connection_t *connection = pn_transport_connection(transport);
	struct engine_connection *c = connection ? connections_find(e, connection) : NULL;
	if (c) {
		/* the error event may come too late: after the connection is taken from its
		 * transport */
		pn_condition_t *condition = pn_transport_condition(transport);
		if (pn_condition_is_set(condition))
			connections_fail(e, connection, "", condition, true);
		close_links(e, connection, NULL);
		e->frames_in += pn_transport_get_frames_input(transport);
		e->frames_out += pn_transport_get_frames_output(transport);
		connections_drop(e, connections_find(e, connection));
		connections_lose(e);
	}
	pn_transport_unbind(transport);
}

/* By kind of event. */
void endpoints_handle(struct engine *e, pn_event_t *event, pn_event_type_t type)
{
	switch (type) {
	case PN_CONNECTION_REMOTE_OPEN: connection_opened(e, pn_event_connection(event)); break;
	case PN_SESSION_REMOTE_OPEN: session_opened(e, pn_event_session(event)); break;
	case PN_LINK_REMOTE_OPEN: link_opened(e, pn_event_link(event)); break;
	case PN_LINK_FLOW: credit_granted(e, pn_event_link(event)); break;
	case PN_LINK_REMOTE_DETACH:
	case PN_LINK_REMOTE_CLOSE: link_closed(e, pn_event_link(event)); break;
	case PN_SESSION_REMOTE_CLOSE: session_closed(e, pn_event_session(event)); break;
	case PN_CONNECTION_REMOTE_CLOSE: connection_closed(e, pn_event_connection(event)); break;
	case PN_TRANSPORT: socket_update(pn_event_transport(event)); break;
	case PN_TRANSPORT_ERROR: transport_failed(e, pn_event_transport(event)); break;
	case PN_TRANSPORT_TAIL_CLOSED: input_ended(e, pn_event_transport(event)); break;
	case PN_TRANSPORT_CLOSED: transport_closed(e, pn_event_transport(event)); break;
	case PN_CONNECTION_UNBOUND: release(e, pn_event_connection(event)); break;
	default: break;
	}
}
