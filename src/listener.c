#define _GNU_SOURCE
#include "listener.h"

#include "clock.h"
#include "poller.h"

#include <errno.h>
#include <netdb.h>
#include <proton/selectable.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long after the system was short of something that accept() needs it is asked again: the
 * connection that waits makes the socket readable all the time. */
#define REST_MS 100

/* In the selectable's record: its struct listener. */
PN_HANDLE(LISTENER_SELF)

static struct listener *listener_of(pn_selectable_t *selectable)
{
	return pn_record_get(pn_selectable_attachments(selectable), LISTENER_SELF);
}

static void update(struct listener *l)
{
	pn_selectable_set_reading(l->selectable, !l->paused && !l->resting);
	pn_selectable_set_deadline(
		l->selectable, l->resting ? clock_monotonic_ns() / NS_PER_MS + REST_MS : 0);
	poller_changed(l->selectable);
}

static void readable(pn_selectable_t *selectable)
{
	struct listener *l = listener_of(selectable);
	int fd = accept4(pn_selectable_get_fd(selectable), NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		l->accepted(l->context, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		l->resting = true;
		update(l);
	}
}

static void expired(pn_selectable_t *selectable)
{
	struct listener *l = listener_of(selectable);
	l->resting = false;
	update(l);
}

static void finalize(pn_selectable_t *selectable)
{
	int fd = pn_selectable_get_fd(selectable);
	if (fd >= 0)
		close(fd);
}

/* A bound socket; -1 and errno. */
static int bind_to(const struct addrinfo *a, const struct socket_buffers *buffers)
{
	int on = 1;
	int fd = socket_open(a->ai_family, buffers);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, SOMAXCONN))
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* The first address of the name that can be had. */
const char *listener_open(
	struct listener *l, pn_reactor_t *reactor, const char *host, const char *port)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *addresses;
	int error = getaddrinfo(host, port, &hints, &addresses);
	if (error)
		return error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error);
	int fd = -1;
	for (struct addrinfo *a = addresses; a && fd < 0; a = a->ai_next)
		fd = bind_to(a, &l->buffers);
	freeaddrinfo(addresses);
	if (fd < 0)
		return strerror(errno);
	l->selectable = pn_reactor_selectable(reactor);
	pn_selectable_set_fd(l->selectable, fd);
	pn_selectable_on_readable(l->selectable, readable);
	pn_selectable_on_expired(l->selectable, expired);
	pn_selectable_on_finalize(l->selectable, finalize);
	pn_record_t *record = pn_selectable_attachments(l->selectable);
	pn_record_def(record, LISTENER_SELF, PN_VOID);
	pn_record_set(record, LISTENER_SELF, l);
	update(l);
	return NULL;
}

/* Does not affect connections. */
void listener_pause(struct listener *l, bool pause)
{
	l->paused = pause;
	if (l->selectable)
		update(l);
}

/* The port is free at once. */
void listener_close(struct listener *l)
{
	if (!l->selectable)
		return;
	close(pn_selectable_get_fd(l->selectable));
	pn_selectable_set_fd(l->selectable, -1);
	pn_selectable_terminate(l->selectable);
	pn_reactor_update(pn_object_reactor(l->selectable), l->selectable);
	l->selectable = NULL;
}
