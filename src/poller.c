#define _GNU_SOURCE
#include "poller.h"

#include "clock.h"
#include "fatal.h"

#include <errno.h>
#include <proton/selectable.h>
#include <stdlib.h>
#include <string.h>

static void add(struct poller *p, pn_selectable_t *selectable)
{
	if (p->count == p->capacity) {
		p->capacity = p->capacity ? 2 * p->capacity : 8;
		p->selectables = realloc(p->selectables, p->capacity * sizeof *p->selectables);
		p->fds = realloc(p->fds, (p->capacity + POLLER_GUESTS_MAX) * sizeof *p->fds);
		if (!p->selectables || !p->fds)
			fatal(EXIT_INTERNAL, "descriptors to poll");
	}
	p->selectables[p->count++] = selectable;
}

static void drop(struct poller *p, pn_selectable_t *selectable)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->selectables[i] == selectable) {
			p->selectables[i] = p->selectables[--p->count];
			break;
		}
	pn_selectable_release(selectable);
}

/* Flags are read before each wait: that they have changed is no news. */
void poller_handle(struct poller *p, pn_event_t *event, pn_event_type_t type)
{
	switch (type) {
	case PN_SELECTABLE_INIT: add(p, pn_event_context(event)); break;
	case PN_SELECTABLE_FINAL: drop(p, pn_event_context(event)); break;
	default: break;
	}
}

/* Without asking first whether the sockets will take it. */
static void write_out(struct poller *p, bool asked)
{
	for (size_t i = 0; i < p->count; i++)
		if ((!asked || pn_selectable_is_writing(p->selectables[i]))
			&& !pn_selectable_is_terminal(p->selectables[i]))
			pn_selectable_writable(p->selectables[i]);
}

/* Where a transport has asked for it. */
void poller_write(struct poller *p)
{
	write_out(p, true);
}

/* Transports ask for writing in an event, which is behind those not yet handled. */
void poller_flush(struct poller *p)
{
	write_out(p, false);
}

/* Fills fds. Returns whether any of them waits to write. */
static bool prepare(struct poller *p)
{
	bool writing = false;
	for (size_t i = 0; i < p->count; i++) {
		pn_selectable_t *s = p->selectables[i];
		bool gone = pn_selectable_is_terminal(s);
		p->fds[i] = (struct pollfd){.fd = gone ? -1 : pn_selectable_get_fd(s)};
		if (pn_selectable_is_reading(s))
			p->fds[i].events |= POLLIN;
		if (pn_selectable_is_writing(s)) {
			p->fds[i].events |= POLLOUT;
			writing = true;
		}
	}
	return writing;
}

/* The time until the earliest deadline: ours, or one of a selectable's. */
static int64_t time_left_ns(const struct poller *p, int64_t now_ns)
{
	int64_t earliest_ns = p->deadline_ns;
	for (size_t i = 0; i < p->count; i++) {
		int64_t deadline_ms = pn_selectable_get_deadline(p->selectables[i]);
		if (deadline_ms && deadline_ms * NS_PER_MS < earliest_ns)
			earliest_ns = deadline_ms * NS_PER_MS;
	}
	if (earliest_ns == INT64_MAX)
		return INT64_MAX;
	return earliest_ns > now_ns ? earliest_ns - now_ns : 0;
}

/* Has one descriptor read, written, or noticed what has become of it. A hang-up is left alone while
 * there is still something to read, so that nothing that arrived is lost. */
static void serve_one(pn_selectable_t *selectable, short revents)
{
	if (pn_selectable_is_terminal(selectable))
		return;
	int64_t deadline_ms = pn_selectable_get_deadline(selectable);
	if (revents & POLLIN)
		pn_selectable_readable(selectable);
	if (revents & POLLOUT)
		pn_selectable_writable(selectable);
	if (deadline_ms && clock_monotonic_ns() / NS_PER_MS >= deadline_ms)
		pn_selectable_expired(selectable);
	if ((revents & (POLLERR | POLLHUP | POLLNVAL)) && !(revents & POLLIN))
		pn_selectable_error(selectable);
}

static void serve(struct poller *p, int ready)
{
	if (ready < 0 && errno != EINTR)
		fatal(EXIT_INTERNAL, "poll");
	for (size_t i = 0; i < p->count; i++)
		serve_one(p->selectables[i], ready > 0 ? p->fds[i].revents : 0);
}

/* In passing. */
void poller_look(struct poller *p)
{
	prepare(p);
	serve(p, poll(p->fds, p->count, 0));
}

/* The least that poll() takes, as the quickest of a few that do not wait. */
static int64_t measure_poll_ns(struct poller *p)
{
	int64_t least_ns = INT64_MAX;
	for (int i = 0; i < 16; i++) {
		int64_t before_ns = clock_monotonic_ns();
		poll(p->fds, p->count, 0);
		int64_t took_ns = clock_monotonic_ns() - before_ns;
		if (took_ns < least_ns)
			least_ns = took_ns;
	}
	return least_ns;
}

/* Books the wait under its cause. What poll() itself takes is work: what was ready at once has not
 * been waited for. */
void poller_wait(struct poller *p)
{
	bool writing = prepare(p);
	memcpy(p->fds + p->count, p->guests, p->guest_count * sizeof *p->guests);
	if (!p->poll_ns)
		p->poll_ns = measure_poll_ns(p);
	int64_t before_ns = clock_monotonic_ns();
	int64_t left_ns = time_left_ns(p, before_ns);
	struct timespec timeout = {left_ns / NS_PER_S, left_ns % NS_PER_S};
	int ready = ppoll(
		p->fds, p->count + p->guest_count, left_ns == INT64_MAX ? NULL : &timeout, NULL);
	int64_t took_ns = clock_monotonic_ns() - before_ns;
	if (took_ns > p->poll_ns)
		p->time_ns[writing ? TIME_SOCKET : p->cause] += (uint64_t)(took_ns - p->poll_ns);
	serve(p, ready);
}

static void ignore(pn_handler_t *handler, pn_event_t *event, pn_event_type_t type)
{
	(void)handler, (void)event, (void)type;
}

/* In the place of the library's handler, so that that has nothing to do. */
void poller_create(struct poller *p, pn_reactor_t *reactor)
{
	*p = (struct poller){.deadline_ns = INT64_MAX};
	pn_handler_t *nothing = pn_handler(ignore);
	pn_reactor_set_global_handler(reactor, nothing);
	pn_decref(nothing);
}

/* After the reactor. */
void poller_destroy(struct poller *p)
{
	free(p->selectables);
	free(p->fds);
	*p = (struct poller){0};
}
