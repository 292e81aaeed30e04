#define _GNU_SOURCE
#include "poller.h"

#include "clock.h"
#include "fatal.h"

#include <errno.h>
#include <proton/selectable.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* As many descriptors are never parked: of a program with one connection, none is. */
#define IN_USE_MIN 4

/* To park a descriptor and to take it back are three system calls, about as much time as it takes
 * in so many calls of poll(). */
#define QUIET_TURNS 128

/* When spinning, one look in so many is at all descriptors, not at sockets alone. */
#define LOOKS_PER_POLL 16

/* In a selectable's record: the number of its seat, as a pointer; and that it spins. */
PN_HANDLE(POLLER_SEAT)
PN_HANDLE(POLLER_SPINS)

/* ---- seats ---- */

static size_t seat_of(pn_selectable_t *selectable)
{
	return (uintptr_t)pn_record_get(pn_selectable_attachments(selectable), POLLER_SEAT);
}

static void set_seat(struct poller *p, size_t i, struct poller_seat seat)
{
	p->seats[i] = seat;
	pn_record_set(
		pn_selectable_attachments(seat.selectable), POLLER_SEAT, (void *)(uintptr_t)i);
}

static void exchange(struct poller *p, size_t i, size_t j)
{
	struct poller_seat seat = p->seats[i];
	set_seat(p, i, p->seats[j]);
	set_seat(p, j, seat);
}

static int64_t deadline_ms_of(pn_selectable_t *selectable)
{
	int64_t deadline_ms = pn_selectable_get_deadline(selectable);
	return deadline_ms ? deadline_ms : INT64_MAX;
}

/* Only one that may read: nothing else would bring it back. */
static bool may_park(const struct poller *p, const struct poller_seat *seat)
{
	pn_selectable_t *s = seat->selectable;
	return seat->quiet >= QUIET_TURNS && p->in_use > IN_USE_MIN && pn_selectable_is_reading(s)
		&& !pn_selectable_is_writing(s) && !pn_selectable_is_terminal(s);
}

static void park(struct poller *p, size_t i)
{
	pn_selectable_t *s = p->seats[i].selectable;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
	if (p->parked_fd < 0)
		p->parked_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->parked_fd < 0
		|| epoll_ctl(p->parked_fd, EPOLL_CTL_ADD, pn_selectable_get_fd(s), &event)) {
		p->seats[i].quiet = 0; /* a limit of the system's: another time */
		return;
	}
	if (deadline_ms_of(s) < p->parked_deadline_ms)
		p->parked_deadline_ms = deadline_ms_of(s);
	pn_selectable_set_registered(s, false);
	exchange(p, i, --p->in_use);
}

/* If it is parked. */
static void take_back(struct poller *p, pn_selectable_t *s)
{
	size_t i = seat_of(s);
	if (i < p->in_use)
		return;
	if (pn_selectable_get_fd(s) >= 0)
		epoll_ctl(p->parked_fd, EPOLL_CTL_DEL, pn_selectable_get_fd(s), NULL);
	pn_selectable_set_registered(s, true);
	p->seats[i].quiet = 0;
	exchange(p, i, p->in_use++);
}

static void add(struct poller *p, pn_selectable_t *selectable)
{
	if (p->count == p->capacity) {
		p->capacity = p->capacity ? 2 * p->capacity : 8;
		p->seats = realloc(p->seats, p->capacity * sizeof *p->seats);
		p->fds = realloc(p->fds, (p->capacity + 1 + POLLER_GUESTS_MAX) * sizeof *p->fds);
		if (!p->seats || !p->fds)
			fatal(EXIT_INTERNAL, "descriptors to poll");
	}
	pn_record_def(pn_selectable_attachments(selectable), POLLER_SEAT, PN_VOID);
	pn_selectable_set_registered(selectable, true);
	bool spins = pn_record_has(pn_selectable_attachments(selectable), POLLER_SPINS);
	set_seat(p, p->count, (struct poller_seat){.selectable = selectable, .spins = spins});
	exchange(p, p->count++, p->in_use);
	p->in_use++;
}

static void drop(struct poller *p, pn_selectable_t *selectable)
{
	take_back(p, selectable);
	exchange(p, seat_of(selectable), --p->in_use);
	exchange(p, p->in_use, --p->count);
	pn_selectable_release(selectable);
}

/* In its record, which is all that there is of it so far. */
void poller_spins_on(pn_selectable_t *selectable)
{
	pn_record_def(pn_selectable_attachments(selectable), POLLER_SPINS, PN_VOID);
}

/* Flags of those in use are read before each wait: that they have changed is no news. */
void poller_handle(struct poller *p, pn_event_t *event, pn_event_type_t type)
{
	switch (type) {
	case PN_SELECTABLE_INIT: add(p, pn_event_context(event)); break;
	case PN_SELECTABLE_UPDATED: take_back(p, pn_event_context(event)); break;
	case PN_SELECTABLE_FINAL: drop(p, pn_event_context(event)); break;
	default: break;
	}
}

/* ---- a turn ---- */

/* Without asking first whether the sockets will take it. */
static void write_out(struct poller *p, bool asked)
{
	for (size_t i = 0; i < p->in_use; i++) {
		pn_selectable_t *s = p->seats[i].selectable;
		bool writing = pn_selectable_is_writing(s);
		if (writing)
			p->seats[i].quiet = 0;
		if ((!asked || writing) && !pn_selectable_is_terminal(s))
			pn_selectable_writable(s);
	}
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

/* Parks those that are quiet, and fills fds. Returns whether any of them waits to write. */
static bool prepare(struct poller *p)
{
	bool writing = false;
	for (size_t i = 0; i < p->in_use; i++) {
		while (i < p->in_use && may_park(p, &p->seats[i]))
			park(p, i);
		if (i == p->in_use)
			break;
		pn_selectable_t *s = p->seats[i].selectable;
		bool gone = pn_selectable_is_terminal(s);
		p->fds[i] = (struct pollfd){.fd = gone ? -1 : pn_selectable_get_fd(s)};
		if (pn_selectable_is_reading(s))
			p->fds[i].events |= POLLIN;
		if (pn_selectable_is_writing(s)) {
			p->fds[i].events |= POLLOUT;
			writing = true;
		}
	}
	p->fds[p->in_use] = (struct pollfd){.fd = p->parked_fd, .events = POLLIN};
	return writing;
}

/* The time until the earliest deadline: ours, or one of a selectable's. */
static int64_t time_left_ns(const struct poller *p, int64_t now_ns)
{
	int64_t earliest_ns = p->deadline_ns, earliest_ms = p->parked_deadline_ms;
	for (size_t i = 0; i < p->in_use; i++)
		if (deadline_ms_of(p->seats[i].selectable) < earliest_ms)
			earliest_ms = deadline_ms_of(p->seats[i].selectable);
	if (earliest_ms != INT64_MAX && earliest_ms * NS_PER_MS < earliest_ns)
		earliest_ns = earliest_ms * NS_PER_MS;
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

/* Those parked that are ready; more than fit are still there next time. */
static void serve_ready(struct poller *p)
{
	struct epoll_event events[64];
	int count = epoll_wait(p->parked_fd, events, 64, 0);
	for (int i = 0; i < count; i++) {
		pn_selectable_t *s = events[i].data.ptr;
		take_back(p, s);
		if (!pn_selectable_is_reading(s))
			events[i].events &= ~(uint32_t)EPOLLIN;
		serve_one(s, (short)events[i].events); /* the bits are poll()'s */
	}
}

/* Those parked whose deadline has come. They tell of the next one, as of any change. */
static void serve_expired(struct poller *p)
{
	if (p->parked_deadline_ms == INT64_MAX
		|| clock_monotonic_ns() / NS_PER_MS < p->parked_deadline_ms)
		return;
	p->parked_deadline_ms = INT64_MAX;
	for (size_t i = p->in_use; i < p->count; i++) {
		pn_selectable_t *s = p->seats[i].selectable;
		serve_one(s, 0);
		if (deadline_ms_of(s) < p->parked_deadline_ms)
			p->parked_deadline_ms = deadline_ms_of(s);
	}
}

static void serve(struct poller *p, int ready)
{
	if (ready < 0 && errno != EINTR)
		fatal(EXIT_INTERNAL, "poll");
	for (size_t i = 0; i < p->in_use; i++) {
		short revents = ready > 0 ? p->fds[i].revents : 0;
		p->seats[i].quiet = revents ? 0 : p->seats[i].quiet + 1;
		serve_one(p->seats[i].selectable, revents);
	}
	serve_expired(p);
	if (ready > 0 && p->fds[p->in_use].revents)
		serve_ready(p);
}

/* ---- spinning ---- */

/* Whether this look is to be at sockets alone. */
static bool reads_sockets(struct poller *p, bool writing)
{
	return ++p->looks % LOOKS_PER_POLL && !writing && p->in_use <= IN_USE_MIN;
}

/* Whether something has come by any of them that is to be handled, or answered. */
static bool read_sockets(struct poller *p)
{
	bool writing = false;
	for (size_t i = 0; i < p->in_use; i++) {
		pn_selectable_t *s = p->seats[i].selectable;
		if (p->seats[i].spins && pn_selectable_is_reading(s)
			&& !pn_selectable_is_terminal(s))
			pn_selectable_readable(s);
		writing = writing || pn_selectable_is_writing(s);
	}
	return writing || pn_collector_more(p->events);
}

/* Books what was spent until the look that found something. */
static void spin(struct poller *p, bool writing)
{
	int64_t began_ns = clock_monotonic_ns(), look_ns = began_ns;
	int64_t left_ns = time_left_ns(p, began_ns);
	int ready = 0;
	for (;;) {
		if (!reads_sockets(p, writing))
			ready = poll(p->fds, p->in_use + 1 + p->guest_count, 0);
		else if (read_sockets(p))
			break;
		if (ready || look_ns - began_ns >= left_ns) {
			serve(p, ready);
			break;
		}
		++*p->polls;
		look_ns = clock_monotonic_ns();
	}
	*p->spun_ns += (uint64_t)(look_ns - began_ns);
	p->time_ns[writing ? TIME_SOCKET : p->cause] += (uint64_t)(look_ns - began_ns);
}

/* ---- a turn's end ---- */

/* In passing. */
void poller_look(struct poller *p)
{
	bool writing = prepare(p);
	if (p->busy && reads_sockets(p, writing))
		read_sockets(p);
	else
		serve(p, poll(p->fds, p->in_use + 1, 0));
}

/* The least that poll() takes, as the quickest of a few that do not wait. */
static int64_t measure_poll_ns(struct poller *p)
{
	int64_t least_ns = INT64_MAX;
	for (int i = 0; i < 16; i++) {
		int64_t before_ns = clock_monotonic_ns();
		poll(p->fds, p->in_use + 1, 0);
		int64_t took_ns = clock_monotonic_ns() - before_ns;
		if (took_ns < least_ns)
			least_ns = took_ns;
	}
	return least_ns;
}

/* Waits until a descriptor is ready, as poll() says, or LEFT have passed since BEFORE. */
static int rest(struct poller *p, int64_t before_ns, int64_t left_ns)
{
	size_t count = p->in_use + 1 + p->guest_count;
	if (left_ns == INT64_MAX)
		return poll(p->fds, count, -1);
	int64_t sleep_ns = waking_sleep_ns(&p->waking, left_ns);
	struct timespec timeout = {sleep_ns / NS_PER_S, sleep_ns % NS_PER_S};
	int ready = ppoll(p->fds, count, &timeout, NULL);
	if (ready)
		return ready;
	int64_t now_ns = clock_monotonic_ns(), due_ns = before_ns + left_ns;
	waking_learn(&p->waking, now_ns - before_ns - sleep_ns);
	while (!ready && now_ns < due_ns && due_ns - now_ns < WAKING_SPIN_MAX_NS) {
		ready = poll(p->fds, count, 0);
		now_ns = clock_monotonic_ns();
	}
	return ready;
}

/* Books the wait under its cause. What poll() itself takes is work: what was ready at once has not
 * been waited for. */
void poller_wait(struct poller *p)
{
	bool writing = prepare(p);
	memcpy(p->fds + p->in_use + 1, p->guests, p->guest_count * sizeof *p->guests);
	if (p->busy) {
		spin(p, writing);
		return;
	}
	if (!p->poll_ns)
		p->poll_ns = measure_poll_ns(p);
	int64_t before_ns = clock_monotonic_ns();
	int ready = rest(p, before_ns, time_left_ns(p, before_ns));
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
	*p = (struct poller){.deadline_ns = INT64_MAX,
		.parked_fd = -1,
		.parked_deadline_ms = INT64_MAX,
		.events = pn_reactor_collector(reactor)};
	pn_handler_t *nothing = pn_handler(ignore);
	pn_reactor_set_global_handler(reactor, nothing);
	pn_decref(nothing);
}

/* After the reactor. */
void poller_destroy(struct poller *p)
{
	if (p->parked_fd >= 0)
		close(p->parked_fd);
	free(p->seats);
	free(p->fds);
	*p = (struct poller){0};
}
