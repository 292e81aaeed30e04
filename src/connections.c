#define _GNU_SOURCE
#include "connections.h"

#include "clock.h"
#include "endpoints.h"
#include "mix.h"
#include "redirect.h"
#include "security.h"

#include <netdb.h>
#include <proton/condition.h>
#include <proton/selectable.h>
#include <proton/transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors that are not connections: standard ones, wake-ups, reports, and what a name service
 * may open for a moment. */
#define DESCRIPTORS_RESERVED 32

/* A peer that is just being started may not listen yet: "precv & psend" must work. */
#define RETRY_FOR_NS   NS_PER_S
#define RETRY_EVERY_NS (20 * NS_PER_MS)

/* ---- the table ---- */

/* By the library's object. */
struct engine_connection *connections_find(struct engine *e, const pn_connection_t *connection)
{
	for (size_t i = 0; i < e->connection_count; i++)
		if (e->connections[i].connection == connection)
			return &e->connections[i];
	return NULL;
}

/* Which descriptor limit we have is asked before it is reached: then there is still one for each
 * report that is to be written. */
static struct engine_connection *add(struct engine *e, pn_connection_t *connection)
{
	if (e->connection_count == e->connection_capacity) {
		e->connection_capacity = e->connection_capacity ? 2 * e->connection_capacity : 4;
		e->connections =
			realloc(e->connections, e->connection_capacity * sizeof *e->connections);
		if (!e->connections)
			fatal(EXIT_INTERNAL, "connections");
	}
	struct engine_connection *c = &e->connections[e->connection_count++];
	*c = (struct engine_connection){.connection = connection};
	if (e->connection_count == e->connection_limit) {
		complain("%zu connections: the limit of open files; no more are accepted until "
			 "one ends",
			e->connection_count);
		listener_pause(&e->listener, true);
	}
	return c;
}

/* Makes room for another. */
void connections_drop(struct engine *e, struct engine_connection *c)
{
	if (e->connection_count == e->connection_limit)
		listener_pause(&e->listener, false);
	*c = e->connections[--e->connection_count];
}

/* A connection of the library's whose frames go through FD. */
static pn_connection_t *serve(struct engine *e, int fd, bool server)
{
	pn_connection_t *connection =
		pn_reactor_connection(e->reactor, pn_reactor_get_handler(e->reactor));
	struct engine_connection *c = add(e, connection);
	socket_name_peer(fd, c->peer);
	if (!server)
		endpoints_open(e, connection);
	pn_transport_t *transport = pn_transport();
	if (server)
		pn_transport_set_server(transport);
	pn_transport_bind(transport, connection);
	security_bind(e->options->security, transport);
	pn_transport_set_max_frame(transport, e->options->max_frame_bytes);
	if (e->options->idle_timeout_ms)
		pn_transport_set_idle_timeout(transport, e->options->idle_timeout_ms);
	pn_decref(transport);
	socket_serve(e->reactor, fd, transport);
	return connection;
}

/* The peer speaks first, or at the same time. */
void connections_accept(struct engine *e, int fd)
{
	struct socket_buffers buffers = {e->options->sndbuf_bytes, e->options->rcvbuf_bytes};
	socket_adopt(fd, &buffers);
	struct engine_connection *c = connections_find(e, serve(e, fd, true));
	c->attach_by_ns = clock_monotonic_ns() + e->options->connect_timeout_ns;
	if (c->attach_by_ns < e->strangers_due_ns)
		e->strangers_due_ns = c->attach_by_ns;
}

static void accepted(void *context, int fd)
{
	connections_accept(context, fd);
}

/* ---- what fails ---- */

/* "listening on", or "connection to" whom the options name. */
static void name_peer(const struct engine *e, char *text, size_t size)
{
	bool ipv6 = strchr(e->options->host, ':');
	snprintf(text, size, "%s %s%s%s:%s", e->options->listen ? "listening on" : "connection to",
		ipv6 ? "[" : "", e->options->host, ipv6 ? "]" : "", e->options->port);
}

static void name_connection(
	const struct engine *e, const struct engine_connection *c, char *text, size_t size)
{
	if (e->options->listen)
		snprintf(text, size, "connection from %s", *c->peer ? c->peer : "a socket");
	else
		name_peer(e, text, size);
}

static void describe(struct failure *failure, const char *description)
{
	snprintf(failure->description, sizeof failure->description, "%s", description);
	failure->description[strcspn(failure->description, "\n")] = '\0';
}

/* What the peer or the library says, and what that means. */
static void explain(const struct engine *e, pn_connection_t *connection, pn_condition_t *condition,
	struct failure *failure)
{
	const char *name = pn_condition_get_name(condition);
	const char *description = pn_condition_get_description(condition);
	snprintf(failure->condition, sizeof failure->condition, "%s", name ? name : "");
	describe(failure, description ? description : "");
	size_t length = strlen(failure->description);
	if (pn_condition_is_redirect(condition))
		redirect_describe(condition, failure->description + length,
			sizeof failure->description - length, length ? "; " : "");
	security_explain(e->options->security, pn_connection_transport(connection), failure);
}

/* No more attempts, or none that could help. */
static void give_up(struct engine *e, const struct failure *failure)
{
	e->dialing = false;
	e->callbacks->failed(e->context, failure);
}

/* Of an attempt that was not the last. It does not fail the run. */
static void tell_failed_attempt(struct engine *e, struct failure failure)
{
	size_t length = strlen(failure.description);
	failure.code = EXIT_DONE;
	snprintf(failure.description + length, sizeof failure.description - length,
		"%sconnecting again", length ? "; " : "");
	e->callbacks->failed(e->context, &failure);
}

/* Makes another attempt after a pause. False if there have been enough. */
static bool try_again(struct engine *e, const struct failure *failure)
{
	int64_t now_ns = clock_monotonic_ns();
	uint64_t attempts = e->options->reconnect_attempts;
	int64_t retry_for_ns = RETRY_FOR_NS < e->options->connect_timeout_ns
		? RETRY_FOR_NS
		: e->options->connect_timeout_ns;
	if (e->dialing_ended)
		return false;
	if (!attempts && (e->opened || now_ns >= e->attempt_began_ns + retry_for_ns))
		return false;
	if (attempts && e->failures++ >= attempts)
		return false;
	e->dialing = true;
	e->dial_at_ns = now_ns + (attempts ? backoff_next_ns(&e->backoff) : RETRY_EVERY_NS);
	if (e->failures == 1)
		tell_failed_attempt(e, *failure);
	return true;
}

/* Whether another connection may fare better. One that just ends while who we are is being settled
 * may have been refused, or not: it has been if that was never settled before. */
static bool may_help(const struct engine *e, const struct failure *failure)
{
	if (e->options->listen
		|| (failure->code != EXIT_CONNECTION && !(failure->cut_off && e->attached)))
		return false;
	return e->options->reconnect_attempts || !strcmp(failure->condition, "proton:io");
}

/* By the library's words. */
static bool is_cut_off(pn_condition_t *condition)
{
	const char *name = pn_condition_get_name(condition);
	const char *description = pn_condition_get_description(condition);
	return (name && !strcmp(name, "proton:io"))
		|| (description && strstr(description, "connection aborted"));
}

/* A listening program does not mind who only knocks. */
void connections_fail(struct engine *e, pn_connection_t *connection, const char *what,
	pn_condition_t *condition, bool again)
{
	struct engine_connection *c = connections_find(e, connection);
	if (!c || c->failed || e->closing)
		return;
	c->failed = true;
	bool stranger = e->options->listen && !c->attached;
	struct failure failure = {.code = stranger ? EXIT_DONE : EXIT_CONNECTION};
	char name[sizeof failure.what - 32];
	name_connection(e, c, name, sizeof name);
	snprintf(failure.what, sizeof failure.what, "%s%s", what, name);
	failure.cut_off = condition && is_cut_off(condition);
	if (condition)
		explain(e, connection, condition, &failure);
	else
		describe(&failure, "closed by the peer");
	if (condition && pn_condition_is_redirect(condition))
		again = false; /* it would be the same */
	if (!again || !may_help(e, &failure) || !try_again(e, &failure))
		give_up(e, &failure);
}

/* A peer that has opened its connection is told why it is ended. */
static void turn_away(struct engine *e, pn_connection_t *connection)
{
	pn_condition_t *condition = pn_connection_condition(connection);
	pn_condition_set_description(condition, "no attached link within the connect timeout");
	connections_fail(e, connection, "", condition, false); /* a name is not ours to be told */
	pn_condition_set_name(condition, "amqp:connection:forced");
	pn_connection_close(connection);
	socket_abort(pn_connection_transport(connection));
}

/* Ends accepted connections that have got nowhere. Only when one may be due are all looked at. */
static void end_strangers(struct engine *e, int64_t now_ns)
{
	if (now_ns >= e->strangers_due_ns) {
		e->strangers_due_ns = INT64_MAX;
		for (size_t i = 0; i < e->connection_count; i++) {
			struct engine_connection *c = &e->connections[i];
			if (c->attached)
				continue;
			if (now_ns >= c->attach_by_ns)
				turn_away(e, c->connection);
			else if (c->attach_by_ns < e->strangers_due_ns)
				e->strangers_due_ns = c->attach_by_ns;
		}
	}
	engine_turn_by(e, e->strangers_due_ns);
}

/* Unless another is being made. */
void connections_lose(struct engine *e)
{
	if (!e->options->listen && !e->closing && !e->dialing && !e->lingering_count)
		e->callbacks->lost(e->context);
}

/* ---- dialing ---- */

/* Without --reconnect, all attempts share one connect timeout. */
static void begin_attempt(struct engine *e, int64_t now_ns)
{
	struct socket_buffers buffers = {e->options->sndbuf_bytes, e->options->rcvbuf_bytes};
	if (e->options->reconnect_attempts || !e->attempt_began_ns)
		e->attempt_began_ns = now_ns;
	e->dial_at_ns = 0;
	e->opened = false;
	dialer_start(&e->dialer, &buffers, e->options->host, e->options->port);
}

/* There is no connection, for this REASON. Without --reconnect, only one that may be PASSING is met
 * with another attempt. */
static void attempt_failed(struct engine *e, const char *reason, bool passing)
{
	struct failure failure = {.code = EXIT_CONNECTION};
	name_peer(e, failure.what, sizeof failure.what);
	describe(&failure, reason);
	if ((passing || e->options->reconnect_attempts) && try_again(e, &failure))
		return;
	give_up(e, &failure);
	e->callbacks->lost(e->context);
	engine_turn_by(e, 0); /* this one is over: the program acts in the next */
}

/* Ends the attempt, wherever it has got to. */
static void time_out(struct engine *e)
{
	const char *reason = e->opened ? "no attached link within the connect timeout"
				       : "no answer within the connect timeout";
	dialer_stop(&e->dialer);
	if (*e->last_reason) /* it says more than that this one has had no time */
		reason = e->last_reason;
	else if (*e->dialer.reason)
		reason = e->dialer.reason;
	for (struct engine_connection *c = e->connections; c < e->connections + e->connection_count;
		c++)
		if (!c->attached) {
			c->failed = true;
			socket_abort(pn_connection_transport(c->connection));
		}
	attempt_failed(e, reason, false);
}

/* From a name to a socket. A name that is unknown stays so, a peer may be about to listen. */
static void dial(struct engine *e, int64_t now_ns)
{
	bool found;
	switch (dialer_turn(&e->dialer, now_ns)) {
	case DIALER_IDLE: break;
	case DIALER_WAITING:
		engine_turn_by(e, e->dialer.next_ns);
		engine_turn_when(e, e->dialer.ready_fd, POLLIN);
		break;
	case DIALER_CONNECTED:
		*e->last_reason = '\0';
		serve(e, dialer_take(&e->dialer), false);
		break;
	case DIALER_FAILED:
		found = e->dialer.count;
		dialer_stop(&e->dialer);
		snprintf(e->last_reason, sizeof e->last_reason, "%s", e->dialer.reason);
		attempt_failed(e, e->dialer.reason, found);
		break;
	}
}

/* A pause, or an attempt; or who is to be waited for no longer. */
void connections_turn(struct engine *e, int64_t now_ns)
{
	if (e->options->listen)
		end_strangers(e, now_ns);
	if (!e->dialing || e->dialing_ended)
		return;
	if (e->dial_at_ns && now_ns >= e->dial_at_ns)
		begin_attempt(e, now_ns);
	if (!e->dial_at_ns) {
		int64_t give_up_ns = e->attempt_began_ns + e->options->connect_timeout_ns;
		dial(e, now_ns);
		bool under_way = e->dialing && !e->dial_at_ns; /* it has not just failed */
		if (under_way && now_ns >= give_up_ns)
			time_out(e);
		else if (under_way)
			engine_turn_by(e, give_up_ns);
	}
	if (e->dial_at_ns)
		engine_turn_by(e, e->dial_at_ns);
}

/* Attempts are counted from here again. */
void connections_attached(struct engine *e, struct engine_connection *c)
{
	if (e->dialing && e->attached)
		e->stats->n.reconnects++;
	c->attached = e->attached = true;
	e->dialing = false;
	e->failures = 0;
	backoff_reset(&e->backoff);
}

/* ---- the beginning and the end ---- */

static void listen_there(struct engine *e)
{
	struct listener *l = &e->listener;
	l->buffers = (struct socket_buffers){e->options->sndbuf_bytes, e->options->rcvbuf_bytes};
	l->accepted = accepted;
	l->context = e;
	const char *error = listener_open(l, e->reactor, e->options->host, e->options->port);
	if (error) {
		struct failure failure = {.code = EXIT_CONNECTION};
		name_peer(e, failure.what, sizeof failure.what);
		describe(&failure, error);
		e->callbacks->failed(e->context, &failure);
		e->callbacks->lost(e->context);
		return;
	}
	char host[NI_MAXHOST], port[8];
	if (socket_local_address(pn_selectable_get_fd(l->selectable), host, port))
		e->callbacks->listening(e->context, host, port);
}

/* One or the other. */
void connections_start(struct engine *e)
{
	struct rlimit files = {.rlim_cur = RLIM_INFINITY};
	getrlimit(RLIMIT_NOFILE, &files);
	e->connection_limit = files.rlim_cur > DESCRIPTORS_RESERVED + 1
		? files.rlim_cur - DESCRIPTORS_RESERVED
		: 1;
	backoff_start(&e->backoff, mix_seed(clock_monotonic_ns(), getpid()));
	if (!e->options->listen) {
		e->dialing = true;
		begin_attempt(e, clock_monotonic_ns());
	} else if (e->options->host) {
		listen_there(e);
	}
}

/* Those that there are go on. */
void connections_stop(struct engine *e)
{
	e->dialing_ended = true;
	listener_close(&e->listener);
	dialer_stop(&e->dialer);
}
