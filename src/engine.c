#define _GNU_SOURCE
#include "engine.h"

#include "answer_links.h"
#include "clock.h"
#include "connections.h"
#include "endpoints.h"

#include <proton/selectable.h>
#include <proton/session.h>
#include <proton/transport.h>
#include <stdlib.h>

static void quiesced(struct engine *e);

/* Hands over deliveries of one link, beginning with EVENT. Returns the event behind them if it was
 * reached, and whether the program wants the reactor to have its turn first in *ENOUGH. */
static pn_event_t *deliveries(struct engine *e, pn_event_t *event, bool *enough)
{
	struct engine_batch batch = {.collector = pn_reactor_collector(e->reactor),
		.first = pn_event_context(event),
		.left = e->options->drain_batch ? e->options->drain_batch : UINT64_MAX};
	batch.link = pn_delivery_link(batch.first);
	if (answer_links_is(e, batch.link))
		e->answers->deliveries(e->answers_context, batch.link, &batch);
	else
		e->callbacks->deliveries(e->context, batch.link, &batch);
	*enough = !batch.left;
	if (*enough && batch.has_output)
		poller_flush(&e->poller);
	return batch.reached;
}

static void handle_one(struct engine *e, pn_event_t *event, pn_event_type_t type)
{
	if (type == PN_REACTOR_QUIESCED) {
		quiesced(e);
		return;
	}
	endpoints_handle(e, event, type);
	poller_handle(&e->poller, event, type);
	if (type == PN_CONNECTION_FINAL) /* what the reactor does behind its handlers */
		pn_list_remove(pn_reactor_children(e->reactor), pn_event_context(event));
}

/* Handles EVENT, which is at the head of the reactor's queue, and all behind it, so that the
 * reactor's dispatch, which costs about 1,100 instructions an event, is gone through once a turn.
 * The last event handled stays at the head: the reactor drops it when we return. False if events
 * are left because the program has had --drain-batch of them; what it has put out, such as credit,
 * is then written first. */
static bool handle_all(struct engine *e, pn_event_t *event)
{
	pn_collector_t *queue = pn_reactor_collector(e->reactor);
	bool enough = false;
	while (event) {
		pn_event_type_t type = pn_event_type(event);
		if (type == PN_DELIVERY) {
			event = deliveries(e, event, &enough);
			if (enough)
				return !pn_collector_more(queue);
		} else {
			handle_one(e, event, type);
			event = NULL;
		}
		if (!event && pn_collector_more(queue)) {
			pn_collector_pop(queue);
			event = pn_collector_peek(queue);
		}
	}
	return true;
}

enum rest { REST_NONE, REST_HANDLED, REST_LEFT };

/* Handles what is behind the head, which is handled. Returns what was there. */
static enum rest handle_rest(struct engine *e)
{
	pn_collector_t *queue = pn_reactor_collector(e->reactor);
	if (!pn_collector_more(queue))
		return REST_NONE;
	pn_collector_pop(queue);
	return handle_all(e, pn_collector_peek(queue)) ? REST_HANDLED : REST_LEFT;
}

/* Ends the reactor: without a selectable it has nothing to wait for. */
static void finish(struct engine *e)
{
	if (!e->anchor)
		return;
	pn_selectable_terminate(e->anchor);
	pn_reactor_update(e->reactor, e->anchor);
	e->anchor = NULL;
}

/* What is due: something of a connection that is being made, or to give up closing. */
static void check_timers(struct engine *e, int64_t now_ns)
{
	if (!e->closing)
		connections_turn(e, now_ns);
	else if (now_ns >= e->close_by_ns)
		engine_abandon(e);
	else
		engine_turn_by(e, e->close_by_ns);
}

/* Everything that has arrived is handled: the program's turn. */
static void turn(struct engine *e)
{
	int64_t now_ns = clock_monotonic_ns();
	e->poller.deadline_ns = INT64_MAX;
	e->poller.guest_count = 0;
	enum time_cause cause = e->callbacks->turn(e->context, now_ns);
	e->poller.cause = cause == TIME_BUSY ? TIME_IDLE : cause; /* no wait is work */
	if (e->lingering_count)
		endpoints_finish(e);
	check_timers(e, now_ns);
	if (e->closing && !e->connection_count)
		finish(e);
}

/* One turn of the reactor: the program sends what it may, that is written, and if neither made
 * any work, wait. What has arrived is handled when we return, or here. */
static void quiesced(struct engine *e)
{
	turn(e);
	enum rest sent = handle_rest(e);
	poller_write(&e->poller);
	enum rest written = handle_rest(e);
	bool worked = sent == REST_HANDLED || written == REST_HANDLED;
	if (sent == REST_LEFT || written == REST_LEFT || !e->anchor || e->abandoned)
		return;
	if (!worked) {
		poller_wait(&e->poller);
		e->looked = true;
	} else if (e->looked) {
		e->looked = false; /* reading can wait a turn: what was written made room */
	} else {
		poller_look(&e->poller);
		e->looked = true;
	}
}

static void dispatch(pn_handler_t *handler, pn_event_t *event, pn_event_type_t type)
{
	(void)type;
	handle_all(*(struct engine **)pn_handler_mem(handler), event);
}

/* The reactor and its handlers. */
void engine_create(struct engine *e, const struct engine_options *options,
	const struct engine_callbacks *callbacks, void *context, struct stats *stats)
{
	*e = (struct engine){.options = options,
		.callbacks = callbacks,
		.context = context,
		.stats = stats,
		.strangers_due_ns = INT64_MAX};
	e->reactor = pn_reactor();
	if (!e->reactor)
		fatal(EXIT_INTERNAL, "reactor");
	pn_handler_t *handler = pn_handler_new(dispatch, sizeof e, NULL);
	*(struct engine **)pn_handler_mem(handler) = e;
	pn_reactor_set_handler(e->reactor, handler);
	pn_decref(handler);
	poller_create(&e->poller, e->reactor);
	e->poller.time_ns = stats->n.time_ns;
	e->poller.busy = options->busy_poll;
	e->poller.polls = &stats->n.polls;
	e->poller.spun_ns = &stats->n.spun_ns;
}

/* Frees all of it. */
void engine_destroy(struct engine *e)
{
	dialer_stop(&e->dialer);
	pn_reactor_free(e->reactor);
	poller_destroy(&e->poller);
	free(e->connections);
	free(e->lingering);
}

/* They are told to CONTEXT. */
void engine_serve_answers(struct engine *e, const struct engine_answers *answers, void *context)
{
	e->answers = answers;
	e->answers_context = context;
}

/* From the first event to the last. */
void engine_run(struct engine *e)
{
	pn_reactor_start(e->reactor);
	e->anchor = pn_reactor_selectable(e->reactor);
	pn_reactor_update(e->reactor, e->anchor);
	connections_start(e);
	while (pn_reactor_process(e->reactor) && !e->abandoned)
		;
	if (!e->abandoned)
		pn_reactor_process(e->reactor); /* the final event */
	engine_count_frames(e);
	pn_collector_release(pn_reactor_collector(e->reactor));
}

/* A server's end of a connection. */
void engine_adopt(struct engine *e, int fd)
{
	connections_accept(e, fd);
}

/* Whatever is under way is given up. */
void engine_end_dialing(struct engine *e)
{
	e->dialing_ended = true;
	dialer_stop(&e->dialer);
}

/* The program may not have it any more when this returns. */
void engine_refuse(struct engine *e, pn_link_t *link, const char *condition, const char *why)
{
	endpoints_refuse(e, link, condition, why);
}

/* Closed by either side, or without a socket: nothing is written any more. */
bool engine_is_gone(pn_connection_t *connection)
{
	pn_transport_t *transport = pn_connection_transport(connection);
	return pn_connection_state(connection) & (PN_LOCAL_CLOSED | PN_REMOTE_CLOSED) || !transport
		|| pn_transport_closed(transport);
}

/* In a session of its own. */
pn_link_t *engine_open_answers(struct engine *e, pn_connection_t *connection, const char *name,
	const char *address, void *link_context)
{
	return answer_links_open(e, connection, name, address, link_context);
}

/* The same, without a reason. */
void engine_detach(struct engine *e, pn_link_t *link)
{
	endpoints_detach(e, link);
}

/* Starts closing. */
void engine_close(struct engine *e)
{
	if (e->closing)
		return;
	e->closing = true;
	e->close_by_ns = clock_monotonic_ns() + e->options->close_timeout_ns;
	connections_stop(e);
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
	pn_reactor_wakeup(e->reactor);
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
