#define _GNU_SOURCE
#include "dialer.h"

#include "fatal.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* In epoll's data; others are indices of attempts. */
#define LOOKUP_READY UINT32_MAX

/* ---- names ---- */

/* One name that is looked up. It has two owners, the dialer and the C library's thread, either of
 * which may be the last: a lookup cannot always be cancelled. */
struct dialer_lookup {
	struct gaicb request;
	struct addrinfo hints;
	int done_fd;
	atomic_int owners;
	char host[NI_MAXHOST], port[8];
};

/* Without AI_ADDRCONFIG: a machine without a network has a loopback interface. */
static const struct addrinfo HINTS = {
	.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};

static void release(struct dialer_lookup *l)
{
	if (atomic_fetch_sub(&l->owners, 1) > 1)
		return;
	if (l->request.ar_result)
		freeaddrinfo(l->request.ar_result);
	close(l->done_fd);
	free(l);
}

/* On a thread of the C library's. */
static void looked_up(union sigval value)
{
	struct dialer_lookup *l = value.sival_ptr;
	eventfd_write(l->done_fd, 1);
	release(l);
}

static void watch(struct dialer *d, int fd, uint32_t events, uint32_t what)
{
	struct epoll_event event = {.events = events, .data.u32 = what};
	if (epoll_ctl(d->ready_fd, EPOLL_CTL_ADD, fd, &event))
		fatal(EXIT_INTERNAL, "epoll");
}

static void fail(struct dialer *d, const char *reason)
{
	snprintf(d->reason, sizeof d->reason, "%s", reason);
	d->state = DIALER_FAILED;
}

static void look_up(struct dialer *d, const char *host, const char *port)
{
	struct dialer_lookup *l = calloc(1, sizeof *l);
	if (!l || (l->done_fd = eventfd(0, EFD_CLOEXEC)) < 0)
		fatal(EXIT_INTERNAL, "name lookup");
	snprintf(l->host, sizeof l->host, "%s", host);
	snprintf(l->port, sizeof l->port, "%s", port);
	l->hints = HINTS;
	l->request =
		(struct gaicb){.ar_name = l->host, .ar_service = l->port, .ar_request = &l->hints};
	atomic_init(&l->owners, 2);
	d->lookup = l;
	watch(d, l->done_fd, EPOLLIN, LOOKUP_READY);
	struct sigevent notify = {.sigev_notify = SIGEV_THREAD,
		.sigev_value.sival_ptr = l,
		.sigev_notify_function = looked_up};
	int error = getaddrinfo_a(GAI_NOWAIT, (struct gaicb *[]){&l->request}, 1, &notify);
	if (error) {
		release(l); /* for the thread that there is not */
		fail(d, gai_strerror(error));
	}
}

/* ---- addresses ---- */

/* Takes addresses of either family in turn, beginning with the first one's, each family in the
 * order given (RFC 8305, section 4). */
static void order(struct dialer *d, const struct addrinfo *addresses)
{
	size_t count = 0;
	for (const struct addrinfo *a = addresses; a; a = a->ai_next)
		count++;
	d->in_turn = calloc(count, sizeof *d->in_turn);
	d->attempts = calloc(count, sizeof *d->attempts);
	if (!d->in_turn || !d->attempts)
		fatal(EXIT_INTERNAL, "addresses");
	int first_family = addresses->ai_family;
	const struct addrinfo *next[2] = {addresses, addresses};
	for (bool other = false; d->count < count; other = !other) {
		const struct addrinfo **a = &next[other];
		while (*a && ((*a)->ai_family != first_family) != other)
			*a = (*a)->ai_next;
		if (!*a)
			continue;
		d->in_turn[d->count++] = *a;
		*a = (*a)->ai_next;
	}
}

/* How much an error says about the peer. Of no answer at all, least is known; a refusal comes from
 * the peer itself. */
static int weight(int error)
{
	switch (error) {
	case 0: return 0;
	case EAFNOSUPPORT:
	case EADDRNOTAVAIL:
	case EINVAL: return 1; /* this machine does not have such addresses */
	case ENETUNREACH: return 2;
	case EHOSTUNREACH: return 3;
	case ETIMEDOUT: return 4;
	case ECONNREFUSED: return 6;
	default: return 5;
	}
}

static void note(struct dialer *d, int error)
{
	if (weight(error) > weight(d->error))
		d->error = error;
}

static void attempt(struct dialer *d)
{
	const struct addrinfo *a = d->in_turn[d->tried];
	int fd = socket_open(a->ai_family, &d->buffers);
	if (fd < 0 || (connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS)) {
		note(d, errno);
		if (fd >= 0)
			close(fd);
		fd = -1;
	} else {
		watch(d, fd, EPOLLOUT, (uint32_t)d->tried);
	}
	d->attempts[d->tried++] = fd;
}

/* The attempt with this index is answered. True if it has succeeded. */
static bool answered(struct dialer *d, size_t index)
{
	int error = 0, fd = d->attempts[index];
	socklen_t size = sizeof error;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	d->attempts[index] = -1;
	if (!error) {
		epoll_ctl(d->ready_fd, EPOLL_CTL_DEL, fd, NULL);
		d->fd = fd;
		return true;
	}
	note(d, error);
	close(fd);
	return false;
}

static bool under_way(const struct dialer *d)
{
	for (size_t i = 0; i < d->tried; i++)
		if (d->attempts[i] >= 0)
			return true;
	return false;
}

/* ---- the course of it ---- */

static void free_all(struct dialer *d)
{
	for (size_t i = 0; i < d->tried; i++)
		if (d->attempts[i] >= 0)
			close(d->attempts[i]);
	if (d->lookup)
		release(d->lookup);
	if (d->addresses)
		freeaddrinfo(d->addresses);
	free(d->in_turn);
	free(d->attempts);
	close(d->ready_fd);
}

/* A number needs nobody's help. */
void dialer_start(
	struct dialer *d, const struct socket_buffers *buffers, const char *host, const char *port)
{
	*d = (struct dialer){.state = DIALER_WAITING, .buffers = *buffers, .fd = -1};
	d->ready_fd = epoll_create1(EPOLL_CLOEXEC);
	if (d->ready_fd < 0)
		fatal(EXIT_INTERNAL, "epoll");
	struct addrinfo hints = HINTS;
	hints.ai_flags |= AI_NUMERICHOST;
	if (!getaddrinfo(host, port, &hints, &d->addresses)) {
		order(d, d->addresses);
	} else {
		d->next_ns = INT64_MAX;
		look_up(d, host, port);
	}
}

static void take_lookup(struct dialer *d)
{
	struct dialer_lookup *l = d->lookup;
	int error = gai_error(&l->request);
	epoll_ctl(d->ready_fd, EPOLL_CTL_DEL, l->done_fd, NULL);
	if (error) {
		fail(d, gai_strerror(error));
		return;
	}
	order(d, l->request.ar_result);
	d->next_ns = 0;
}

/* What has been answered. */
static void take_answers(struct dialer *d)
{
	struct epoll_event events[8];
	int count = epoll_wait(d->ready_fd, events, 8, 0);
	for (int i = 0; i < count && d->state == DIALER_WAITING; i++)
		if (events[i].data.u32 == LOOKUP_READY)
			take_lookup(d);
		else if (answered(d, events[i].data.u32))
			d->state = DIALER_CONNECTED;
		else
			d->next_ns = 0; /* the next one need not wait any longer */
}

/* Answers first: one of them may be what is wanted. */
enum dialer_state dialer_turn(struct dialer *d, int64_t now_ns)
{
	if (d->state == DIALER_WAITING)
		take_answers(d);
	while (d->state == DIALER_WAITING && d->tried < d->count && now_ns >= d->next_ns) {
		attempt(d);
		if (d->attempts[d->tried - 1] >= 0)
			d->next_ns = now_ns + DIALER_ATTEMPT_NS;
	}
	if (d->state != DIALER_WAITING || !d->count || d->tried < d->count)
		return d->state;
	d->next_ns = INT64_MAX;
	if (!under_way(d))
		fail(d, strerror(d->error));
	return d->state;
}

/* The others are closed. */
int dialer_take(struct dialer *d)
{
	int fd = d->fd;
	free_all(d);
	*d = (struct dialer){.state = DIALER_IDLE};
	return fd;
}

/* Idempotent. */
void dialer_stop(struct dialer *d)
{
	if (d->state == DIALER_IDLE)
		return;
	char reason[sizeof d->reason] = "";
	if (*d->reason)
		strcpy(reason, d->reason);
	else if (!d->count)
		strcpy(reason, "no answer from the name service within the connect timeout");
	else if (!under_way(d) || weight(d->error) > weight(ETIMEDOUT))
		snprintf(reason, sizeof reason, "%s", strerror(d->error));
	if (d->state == DIALER_CONNECTED)
		close(d->fd);
	free_all(d);
	*d = (struct dialer){.state = DIALER_IDLE};
	strcpy(d->reason, reason);
}
