#define _GNU_SOURCE
#include "endpoints.h"

#include "clock.h"
#include "security.h"

#include <netdb.h>
#include <proton/condition.h>
#include <proton/error.h>
#include <proton/session.h>
#include <proton/terminus.h>
#include <proton/transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Descriptors that are not connections: standard ones, wake-ups, reports, and what a name service
 * may open for a moment. */
#define DESCRIPTORS_RESERVED 32

#define RETRY_EVERY_NS (20 * NS_PER_MS)

static struct engine_connection *find(struct engine *e, const pn_connection_t *connection)
{
	for (size_t i = 0; i < e->connection_count; i++)
		if (e->connections[i].connection == connection)
			return &e->connections[i];
	return NULL;
}

/* Which descriptor limit we have is asked before it is reached: at the limit the library's
 * acceptor would spin and say nothing. */
static void pause_accepting(struct engine *e, bool pause)
{
	if (e->acceptor)
		pn_selectable_set_reading((pn_selectable_t *)e->acceptor, !pause);
}

static void add(struct engine *e, pn_connection_t *connection)
{
	if (e->connection_count == e->connection_capacity) {
		e->connection_capacity = e->connection_capacity ? 2 * e->connection_capacity : 4;
		e->connections =
			realloc(e->connections, e->connection_capacity * sizeof *e->connections);
		if (!e->connections)
			fatal(EXIT_INTERNAL, "connections");
	}
	e->connections[e->connection_count++] =
		(struct engine_connection){.connection = connection};
	if (e->connection_count == e->connection_limit) {
		complain("%zu connections: the limit of open files; no more are accepted until "
			 "one ends",
			e->connection_count);
		pause_accepting(e, true);
	}
}

static void drop(struct engine *e, struct engine_connection *c)
{
	if (e->connection_count == e->connection_limit)
		pause_accepting(e, false);
	*c = e->connections[--e->connection_count];
}

/* For error texts. */
void endpoints_name_peer(const struct engine *e, char *text, size_t size)
{
	bool ipv6 = strchr(e->options->host, ':');
	snprintf(text, size, "%s %s%s%s:%s", e->options->listen ? "listening on" : "connection to",
		ipv6 ? "[" : "", e->options->host, ipv6 ? "]" : "", e->options->port);
}

/* "connection to" or "connection from" the peer of CONNECTION. */
static void name_connection(
	const struct engine *e, pn_connection_t *connection, char *text, size_t size)
{
	const char *from = e->options->listen
		? pn_reactor_get_connection_address(e->reactor, connection)
		: NULL;
	if (from)
		snprintf(text, size, "connection from %s", from);
	else
		endpoints_name_peer(e, text, size);
}

static void copy_condition(struct failure *failure, pn_condition_t *condition)
{
	const char *name = pn_condition_get_name(condition);
	const char *description = pn_condition_get_description(condition);
	/* which system call failed is of no use to anybody: "recv: Connection refused" */
	if (description
		&& (!strncmp(description, "recv: ", 6) || !strncmp(description, "send: ", 6)))
		description += 6;
	snprintf(failure->condition, sizeof failure->condition, "%s", name ? name : "");
	snprintf(failure->description, sizeof failure->description, "%s",
		description ? description : "");
	failure->description[strcspn(failure->description, "\n")] = '\0';
}

/* Reports what went wrong with WHAT, once a connection. Before the peer has opened one, an I/O
 * error may pass: the attempt is repeated for a while. */
static void fail(
	struct engine *e, pn_connection_t *connection, const char *what, pn_condition_t *condition)
{
	struct engine_connection *c = find(e, connection);
	if (!c || c->failed || e->closing)
		return;
	c->failed = true;
	/* a listening program does not mind who only knocks */
	bool stranger = e->options->listen && !c->attached;
	struct failure failure = {.code = stranger ? EXIT_DONE : EXIT_CONNECTION};
	char name[sizeof failure.what - 32];
	name_connection(e, connection, name, sizeof name);
	snprintf(failure.what, sizeof failure.what, "%s%s", what, name);
	copy_condition(&failure, condition);
	security_explain(e->options->security, pn_connection_transport(connection), &failure);
	if (!e->options->listen && !e->opened && !strcmp(failure.condition, "proton:io")) {
		e->attempt = failure;
		e->retry_at_ns = clock_monotonic_ns() + RETRY_EVERY_NS;
	} else {
		e->callbacks->failed(e->context, &failure);
	}
}

/* A numeric address and port of the socket FD; false if it has none. */
static bool local_address(int fd, char *host, size_t host_size, char *port, size_t port_size)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	return !getsockname(fd, (struct sockaddr *)&address, &size)
		&& !getnameinfo((struct sockaddr *)&address, size, host, (socklen_t)host_size, port,
			(socklen_t)port_size, NI_NUMERICHOST | NI_NUMERICSERV);
}

/* Opens the listening socket. */
void endpoints_listen(struct engine *e)
{
	struct rlimit files = {.rlim_cur = RLIM_INFINITY};
	getrlimit(RLIMIT_NOFILE, &files);
	e->connection_limit = files.rlim_cur > DESCRIPTORS_RESERVED + 1
		? files.rlim_cur - DESCRIPTORS_RESERVED
		: 1;
	e->acceptor = pn_reactor_acceptor(e->reactor, e->options->host, e->options->port, NULL);
	if (!e->acceptor) {
		struct failure failure = {.code = EXIT_CONNECTION};
		endpoints_name_peer(e, failure.what, sizeof failure.what);
		snprintf(failure.description, sizeof failure.description, "%s",
			pn_error_text(pn_reactor_error(e->reactor)));
		failure.description[strcspn(failure.description, "\n")] = '\0';
		e->callbacks->failed(e->context, &failure);
		e->callbacks->lost(e->context);
		return;
	}
	char host[NI_MAXHOST], port[6];
	if (local_address(pn_selectable_get_fd((pn_selectable_t *)e->acceptor), host, sizeof host,
		    port, sizeof port))
		e->callbacks->listening(e->context, host, port);
}

/* One session and one link; the socket is opened by the reactor when it handles the open. */
void endpoints_connect(struct engine *e)
{
	e->attempt = (struct failure){.code = EXIT_DONE};
	pn_connection_t *connection = pn_reactor_connection_to_host(
		e->reactor, e->options->host, e->options->port, pn_reactor_get_handler(e->reactor));
	pn_connection_set_container(connection, e->options->container_id);
	pn_connection_set_hostname(connection, e->options->host);
	security_identify(e->options->security, connection);
	pn_connection_open(connection);
	pn_session_t *session = pn_session(connection);
	if (e->options->session_window_bytes)
		pn_session_set_incoming_capacity(session, e->options->session_window_bytes);
	pn_session_open(session);
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
	if (e->closing || !pn_link_get_context(link) || !e->callbacks->holds(e->context, link))
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

/* The only connection of a program that has made it is of no use any more. */
static void lose(struct engine *e)
{
	if (!e->options->listen && !e->closing && !e->lingering_count)
		e->callbacks->lost(e->context);
}

static void close_link(struct engine *e, pn_link_t *link)
{
	bool attached = pn_link_get_context(link);
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
		if (pn_session_connection(pn_link_session(e->lingering[i])) == connection)
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
		e->lingering[i] = e->lingering[--e->lingering_count];
		pn_connection_t *connection = pn_session_connection(pn_link_session(link));
		bool unbound = !pn_connection_transport(connection);
		close_link(e, link);
		pn_link_free(link);
		if (unbound)
			release(e, connection);
		lose(e);
	}
}

/* Everything, in the order link, connection. */
void endpoints_close(struct engine *e)
{
	if (e->acceptor)
		pn_acceptor_close(e->acceptor);
	e->acceptor = NULL;
	endpoints_finish(e);
	for (size_t i = 0; i < e->connection_count; i++) {
		close_links(e, e->connections[i].connection, NULL);
		pn_connection_close(e->connections[i].connection);
	}
}

static void bound(struct engine *e, pn_transport_t *transport)
{
	security_bind(e->options->security, transport);
	if (e->options->max_frame_bytes)
		pn_transport_set_max_frame(transport, e->options->max_frame_bytes);
	if (e->options->idle_timeout_ms)
		pn_transport_set_idle_timeout(transport, e->options->idle_timeout_ms);
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
	if (!(pn_session_state(session) & PN_LOCAL_UNINIT))
		return;
	if (e->options->session_window_bytes)
		pn_session_set_incoming_capacity(session, e->options->session_window_bytes);
	pn_session_open(session);
}

/* A link that the peer asks for. Only the other end of what we are makes sense. */
static bool accept_link(struct engine *e, pn_link_t *link)
{
	if (pn_link_is_sender(link) != e->options->sender) {
		pn_condition_t *condition = pn_link_condition(link);
		pn_condition_set_name(condition, "amqp:not-implemented");
		pn_condition_set_description(condition,
			e->options->sender ? "this is a sender: attach a receiver"
					   : "this is a receiver: attach a sender");
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
 * which says why, follows. */
static bool refused(struct engine *e, pn_link_t *link)
{
	pn_terminus_t *terminus =
		e->options->sender ? pn_link_remote_target(link) : pn_link_remote_source(link);
	return pn_terminus_get_type(terminus) == PN_UNSPECIFIED;
}

static void link_opened(struct engine *e, pn_link_t *link)
{
	if (e->closing)
		return;
	bool ours = !(pn_link_state(link) & PN_LOCAL_UNINIT);
	if (ours ? refused(e, link) : !accept_link(e, link))
		return;
	e->attached = true;
	struct engine_connection *c = find(e, pn_session_connection(pn_link_session(link)));
	if (c)
		c->attached = true;
	/* Deliveries count as references to their link. Without one of ours, the library would run
	 * the link's finalizer, and keep the link after all, with each delivery that comes and goes
	 * alone: 700 instructions. */
	pn_incref(link);
	e->callbacks->attached(e->context, link);
}

static void link_closed(struct engine *e, pn_link_t *link)
{
	pn_condition_t *condition = pn_link_remote_condition(link);
	bool unexpected = !pn_link_get_context(link) && !e->options->listen;
	if (pn_condition_is_set(condition) || unexpected)
		fail(e, pn_session_connection(pn_link_session(link)), "link of ", condition);
	if (lingers(e, link))
		return;
	close_link(e, link);
	pn_link_free(link);
	lose(e);
}

static void session_closed(struct engine *e, pn_session_t *session)
{
	pn_condition_t *condition = pn_session_remote_condition(session);
	if (pn_condition_is_set(condition))
		fail(e, pn_session_connection(session), "session of ", condition);
	close_links(e, pn_session_connection(session), session);
	pn_session_close(session);
	lose(e);
}

static void connection_closed(struct engine *e, pn_connection_t *connection)
{
	pn_condition_t *condition = pn_connection_remote_condition(connection);
	if (pn_condition_is_set(condition))
		fail(e, connection, "", condition);
	close_links(e, connection, NULL);
	pn_connection_close(connection);
}

/* The socket is gone. */
static void transport_closed(struct engine *e, pn_transport_t *transport)
{
	pn_connection_t *connection = pn_transport_connection(transport);
	struct engine_connection *c = connection ? find(e, connection) : NULL;
	if (!c)
		return;
	/* the error event may come too late: after the connection is taken from its transport */
	pn_condition_t *condition = pn_transport_condition(transport);
	if (pn_condition_is_set(condition))
		fail(e, connection, "", condition);
	close_links(e, connection, NULL);
	e->frames_in += pn_transport_get_frames_input(transport);
	e->frames_out += pn_transport_get_frames_output(transport);
	c = find(e, connection);
	if (c)
		drop(e, c);
	if (!e->retry_at_ns)
		lose(e);
}

/* By kind of event. */
void endpoints_handle(struct engine *e, pn_event_t *event, pn_event_type_t type)
{
	switch (type) {
	case PN_CONNECTION_INIT: add(e, pn_event_connection(event)); break;
	case PN_CONNECTION_BOUND: bound(e, pn_event_transport(event)); break;
	case PN_CONNECTION_REMOTE_OPEN: connection_opened(e, pn_event_connection(event)); break;
	case PN_SESSION_REMOTE_OPEN: session_opened(e, pn_event_session(event)); break;
	case PN_LINK_REMOTE_OPEN: link_opened(e, pn_event_link(event)); break;
	case PN_LINK_REMOTE_DETACH:
	case PN_LINK_REMOTE_CLOSE: link_closed(e, pn_event_link(event)); break;
	case PN_SESSION_REMOTE_CLOSE: session_closed(e, pn_event_session(event)); break;
	case PN_CONNECTION_REMOTE_CLOSE: connection_closed(e, pn_event_connection(event)); break;
	case PN_TRANSPORT_ERROR:
		fail(e, pn_event_connection(event), "",
			pn_transport_condition(pn_event_transport(event)));
		break;
	case PN_TRANSPORT_CLOSED: transport_closed(e, pn_event_transport(event)); break;
	case PN_CONNECTION_UNBOUND: release(e, pn_event_connection(event)); break;
	default: break;
	}
}
