#define _GNU_SOURCE
#include "socket.h"

#include "clock.h"
#include "poller.h"
#include "trap.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <proton/condition.h>
#include <proton/selectable.h>
#include <proton/transport.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* In a selectable's record: the transport, which it owns; in the transport's: the selectable. */
PN_HANDLE(SOCKET_OTHER)

/* ---- descriptors ---- */

static void configure(int fd, const struct socket_buffers *buffers)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (buffers->send_bytes)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffers->send_bytes, sizeof(int));
	if (buffers->receive_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffers->receive_bytes, sizeof(int));
}

/* Buffers have their size before there is a connection, whose window scale depends on it. */
int socket_open(int family, const struct socket_buffers *buffers)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		configure(fd, buffers);
	return fd;
}

/* Flags, too. */
void socket_adopt(int fd, const struct socket_buffers *buffers)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	configure(fd, buffers);
}

static bool to_texts(
	const struct sockaddr_storage *address, socklen_t size, char host[NI_MAXHOST], char port[8])
{
	return (address->ss_family == AF_INET || address->ss_family == AF_INET6)
		&& !getnameinfo((const struct sockaddr *)address, size, host, NI_MAXHOST, port, 8,
			NI_NUMERICHOST | NI_NUMERICSERV);
}

/* Numbers. */
void socket_name_peer(int fd, char name[SOCKET_NAME_SIZE])
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	char host[NI_MAXHOST], port[8];
	*name = '\0';
	if (getpeername(fd, (struct sockaddr *)&address, &size)
		|| !to_texts(&address, size, host, port))
		return;
	bool ipv6 = strchr(host, ':');
	snprintf(name, SOCKET_NAME_SIZE, "%s%.*s%s:%s", ipv6 ? "[" : "",
		INET6_ADDRSTRLEN + IF_NAMESIZE, host, ipv6 ? "]" : "", port);
}

/* Numbers, too. */
bool socket_local_address(int fd, char host[NI_MAXHOST], char port[8])
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	return !getsockname(fd, (struct sockaddr *)&address, &size)
		&& to_texts(&address, size, host, port);
}

/* ---- transports ---- */

static pn_transport_t *transport_of(pn_selectable_t *selectable)
{
	return pn_record_get(pn_selectable_attachments(selectable), SOCKET_OTHER);
}

/* Lets the transport look at the clock, for keep-alives. Returns when it is to do so again, in ms
 * of the monotonic clock; 0: never. */
static pn_timestamp_t tick(pn_transport_t *transport)
{
	if (!pn_transport_get_idle_timeout(transport)
		&& !pn_transport_get_remote_idle_timeout(transport))
		return 0;
	return pn_transport_tick(transport, clock_monotonic_ns() / NS_PER_MS);
}

/* Asks the transport what is to be waited for. It is served until both directions have ended. */
static void update(pn_selectable_t *selectable, pn_transport_t *transport)
{
	ssize_t capacity = pn_transport_capacity(transport);
	ssize_t pending = pn_transport_pending(transport);
	pn_selectable_set_reading(selectable, capacity > 0);
	pn_selectable_set_writing(selectable, pending > 0);
	pn_selectable_set_deadline(selectable, tick(transport));
	poller_changed(selectable);
	if ((capacity < 0 || pending < 0) && pn_transport_closed(transport)) {
		pn_selectable_terminate(selectable);
		pn_reactor_update(pn_object_reactor(selectable), selectable);
	}
}

/* The first reason is the one that is told. */
static void fail(pn_transport_t *transport, int error)
{
	pn_condition_t *condition = pn_transport_condition(transport);
	if (pn_condition_is_set(condition))
		return;
	pn_condition_set_name(condition, "proton:io");
	pn_condition_set_description(condition, strerror(error));
}

static bool in_passing(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* As much as the transport's own buffer has room for, 8 KiB: what is granted to the sender is
 * written before more is read. A receiver that read all that is there would take a small window
 * whole, and its sender would wait meanwhile. */
static void readable(pn_selectable_t *selectable)
{
	pn_transport_t *transport = transport_of(selectable);
	ssize_t capacity = pn_transport_capacity(transport);
	if (capacity > 0) {
		ssize_t got = read(pn_selectable_get_fd(selectable), pn_transport_tail(transport),
			(size_t)capacity);
		if (got < 0 && in_passing(errno))
			return;
		if (got > 0) {
			trap_process(transport, (size_t)got);
		} else {
			if (got < 0)
				fail(transport, errno);
			trap_close_tail(transport);
		}
	}
	update(selectable, transport);
}

static void writable(pn_selectable_t *selectable)
{
	pn_transport_t *transport = transport_of(selectable);
	ssize_t pending = pn_transport_pending(transport);
	if (pending == 0)
		return;
	if (pending > 0) {
		ssize_t sent = send(pn_selectable_get_fd(selectable), pn_transport_head(transport),
			(size_t)pending, MSG_NOSIGNAL);
		if (sent >= 0) {
			pn_transport_pop(transport, (size_t)sent);
		} else if (in_passing(errno)) {
			return;
		} else {
			fail(transport, errno);
			pn_transport_close_head(transport);
		}
	}
	update(selectable, transport);
	/* an event: whoever has waited for room has its turn before the next wait */
	pn_reactor_update(pn_object_reactor(selectable), selectable);
}

static void end(pn_selectable_t *selectable, pn_transport_t *transport)
{
	pn_transport_close_head(transport);
	trap_close_tail(transport);
	update(selectable, transport);
}

/* The connection is gone in both directions, and nothing is left to be read. */
static void hung_up(pn_selectable_t *selectable)
{
	pn_transport_t *transport = transport_of(selectable);
	int error = 0;
	socklen_t size = sizeof error;
	getsockopt(pn_selectable_get_fd(selectable), SOL_SOCKET, SO_ERROR, &error, &size);
	if (error)
		fail(transport, error);
	end(selectable, transport);
}

static void expired(pn_selectable_t *selectable)
{
	update(selectable, transport_of(selectable));
}

static void finalize(pn_selectable_t *selectable)
{
	pn_record_set(pn_transport_attachments(transport_of(selectable)), SOCKET_OTHER, NULL);
	close(pn_selectable_get_fd(selectable));
}

/* The two know each other, until the selectable is no more. */
void socket_serve(pn_reactor_t *reactor, int fd, pn_transport_t *transport)
{
	pn_selectable_t *selectable = pn_reactor_selectable(reactor);
	pn_selectable_set_fd(selectable, fd);
	poller_spins_on(selectable);
	pn_selectable_on_readable(selectable, readable);
	pn_selectable_on_writable(selectable, writable);
	pn_selectable_on_error(selectable, hung_up);
	pn_selectable_on_expired(selectable, expired);
	pn_selectable_on_finalize(selectable, finalize);
	pn_record_t *record = pn_selectable_attachments(selectable);
	pn_record_def(record, SOCKET_OTHER, PN_OBJECT);
	pn_record_set(record, SOCKET_OTHER, transport);
	record = pn_transport_attachments(transport);
	pn_record_def(record, SOCKET_OTHER, PN_WEAKREF);
	pn_record_set(record, SOCKET_OTHER, selectable);
	update(selectable, transport);
}

static pn_selectable_t *selectable_of(pn_transport_t *transport)
{
	pn_selectable_t *s = pn_record_get(pn_transport_attachments(transport), SOCKET_OTHER);
	return s && !pn_selectable_is_terminal(s) ? s : NULL;
}

/* If it is still served. */
void socket_update(pn_transport_t *transport)
{
	pn_selectable_t *selectable = selectable_of(transport);
	if (selectable)
		update(selectable, transport);
}

/* What is to be written is, if there is room. */
void socket_abort(pn_transport_t *transport)
{
	pn_selectable_t *selectable = selectable_of(transport);
	if (!selectable)
		return;
	writable(selectable);
	if (!pn_selectable_is_terminal(selectable))
		end(selectable, transport);
}
