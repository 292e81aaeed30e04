#define _GNU_SOURCE
#include "engine.h"

#include "clock.h"
#include "endpoints.h"

#include <errno.h>
#include <proton/session.h>
#include <proton/transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_EVERY_NS (20 * NS_PER_MS)
/* A peer that is just being started may not listen yet: "precv & psend" must work. */
#define RETRY_FOR_NS NS_PER_S

/* Hands deliveries over until an event of another kind is reached, and dispatches that in full:
 * to us, to the reactor's global handler, and as the reactor itself does after both. */
static void deliveries(struct engine *e, pn_event_t *event)
{
	struct engine_batch batch = {.collector = pn_reactor_collector(e->reactor)};
	do {
		batch.first = pn_event_context(event);
		batch.link = pn_delivery_link(batch.first);
		batch.left = e->options->drain_batch ? e->options->drain_batch : UINT64_MAX;
		batch.reached = NULL;
		e->callbacks->deliveries(e->context, batch.link, &batch);
		event = batch.reached;
	} while (event && pn_event_type(event) == PN_DELIVERY);
	if (!event)
		return;
	pn_event_type_t type = pn_event_type(event);
	engine_handle(e, event, type);
	pn_handler_dispatch(pn_reactor_get_global_handler(e->reactor), event, type);
	if (type == PN_CONNECTION_FINAL)
		pn_list_remove(pn_reactor_children(e->reactor), pn_event_context(event));
}

/* Ends the reactor: without a selectable it has nothing to wait for. */
static void finish(struct engine *e)
{
	if (!e->wakeup)
		return;
	pn_selectable_terminate(e->wakeup);
	pn_reactor_update(e->reactor, e->wakeup);
	e->wakeup = NULL;
}

static void give_up_connecting(struct engine *e)
{
	if (!e->attempt.code) {
		e->attempt.code = EXIT_CONNECTION;
		endpoints_name_peer(e, e->attempt.what, sizeof e->attempt.what);
		snprintf(e->attempt.description, sizeof e->attempt.description,
			"no %s within the connect timeout", e->opened ? "attached link" : "answer");
	}
	e->callbacks->failed(e->context, &e->attempt);
	e->callbacks->lost(e->context);
	engine_close(e);
}

/* Connect again, give up connecting, give up closing: whichever is due. */
static void check_timers(struct engine *e, int64_t now_ns)
{
	if (e->closing) {
		if (now_ns >= e->close_by_ns)
			engine_abandon(e);
		else
			engine_turn_by(e, e->close_by_ns);
		return;
	}
	if (e->options->listen || e->attached)
		return;
	int64_t give_up_ns = e->started_ns + e->options->connect_timeout_ns;
	bool refused = e->attempt.code && now_ns >= e->started_ns + RETRY_FOR_NS;
	if (now_ns >= give_up_ns || refused) {
		give_up_connecting(e);
		return;
	}
	engine_turn_by(e, give_up_ns);
	if (!e->retry_at_ns)
		return;
	if (now_ns >= e->retry_at_ns) {
		e->retry_at_ns = 0;
		endpoints_connect(e);
	} else {
		engine_turn_by(e, e->retry_at_ns);
	}
}

/* The last thing before a wait. */
static void turn(struct engine *e)
{
	int64_t now_ns = clock_monotonic_ns();
	e->poller.deadline_ns = INT64_MAX;
	e->poller.cause = e->callbacks->turn(e->context, now_ns);
	check_timers(e, now_ns);
	if (e->closing && !e->connection_count)
		finish(e);
}

/* A connection that was never opened failed: the peer may not be there yet. */
void engine_attempt_failed(struct engine *e, const struct failure *failure)
{
	e->attempt = *failure;
	e->retry_at_ns = clock_monotonic_ns() + RETRY_EVERY_NS;
}

/* One event. */
void engine_handle(struct engine *e, pn_event_t *event, pn_event_type_t type)
{
	switch (type) {
	case PN_DELIVERY: deliveries(e, event); break;
	case PN_REACTOR_QUIESCED: turn(e); break;
	default: endpoints_handle(e, event, type);
	}
}

static void dispatch(pn_handler_t *handler, pn_event_t *event, pn_event_type_t type)
{
	engine_handle(*(struct engine **)pn_handler_mem(handler), event, type);
}

static void woken(pn_selectable_t *selectable)
{
	eventfd_t value;
	eventfd_read(pn_selectable_get_fd(selectable), &value);
}

/* Buffer sizes of sockets; other descriptors are left alone. */
static void opened(void *context, int fd)
{
	struct engine *e = context;
	int type;
	socklen_t size = sizeof type;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size))
		return;
	if (e->options->sndbuf_bytes)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &e->options->sndbuf_bytes, sizeof(int));
	if (e->options->rcvbuf_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &e->options->rcvbuf_bytes, sizeof(int));
}

/* The reactor, its handlers, and the descriptor that wakes it. */
void engine_create(struct engine *e, const struct engine_options *options,
	const struct engine_callbacks *callbacks, void *context, struct stats *stats)
{
	*e = (struct engine){
		.options = options, .callbacks = callbacks, .context = context, .stats = stats};
	e->reactor = pn_reactor();
	e->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!e->reactor || e->wakeup_fd < 0)
		fatal(EXIT_INTERNAL, "reactor");
	pn_handler_t *handler = pn_handler_new(dispatch, sizeof e, NULL);
	*(struct engine **)pn_handler_mem(handler) = e;
	pn_reactor_set_handler(e->reactor, handler);
	pn_decref(handler);
	poller_install(&e->poller, e->reactor);
	e->poller.time_ns = stats->n.time_ns;
	e->poller.opened = opened;
	e->poller.context = e;
}

/* Frees all of it. */
void engine_destroy(struct engine *e)
{
	pn_reactor_free(e->reactor);
	poller_destroy(&e->poller);
	free(e->connections);
	close(e->wakeup_fd);
}

/* From the first event to the last. */
void engine_run(struct engine *e)
{
	e->started_ns = clock_monotonic_ns();
	pn_reactor_start(e->reactor);
	e->wakeup = pn_reactor_selectable(e->reactor);
	pn_selectable_set_fd(e->wakeup, e->wakeup_fd);
	pn_selectable_on_readable(e->wakeup, woken);
	pn_selectable_set_reading(e->wakeup, true);
	pn_reactor_update(e->reactor, e->wakeup);
	if (e->options->listen)
		endpoints_listen(e);
	else
		endpoints_connect(e);
	while (pn_reactor_process(e->reactor) && !e->abandoned)
		;
	if (!e->abandoned)
		pn_reactor_process(e->reactor); /* the final event */
	engine_count_frames(e);
	pn_collector_release(pn_reactor_collector(e->reactor));
}

/* Starts closing. */
void engine_close(struct engine *e)
{
	if (e->closing)
		return;
	e->closing = true;
	e->close_by_ns = clock_monotonic_ns() + e->options->close_timeout_ns;
	endpoints_close(e);
}

/* Stops without manners. */
void engine_abandon(struct engine *e)
{
	e->closing = e->abandoned = true;
}

/* Thread-safe. */
void engine_wake(struct engine *e)
{
	eventfd_write(e->wakeup_fd, 1);
}

/* Sums up what the transports have counted. */
void engine_count_frames(struct engine *e)
{
	e->stats->n.frames_in = e->frames_in;
	e->stats->n.frames_out = e->frames_out;
	for (size_t i = 0; i < e->connection_count; i++) {
		pn_transport_t *t = pn_connection_transport(e->connections[i].connection);
		e->stats->n.frames_in += pn_transport_get_frames_input(t);
		e->stats->n.frames_out += pn_transport_get_frames_output(t);
	}
}
