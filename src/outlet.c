#define _GNU_SOURCE
#include "outlet.h"

#include "fatal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* An open file description of our own, on what FD is open on, if that is for writing. Not of a
 * socket. */
static int open_again(int fd)
{
	char path[32];
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* How, is decided by what it is. */
void outlet_open(struct outlet *o, int fd)
{
	struct stat status = {0};
	*o = (struct outlet){.fd = fd, .own_fd = -1, .way = OUTLET_WHOLE};
	fstat(fd, &status);
	if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode))
		return;
	if (S_ISSOCK(status.st_mode)) {
		o->way = OUTLET_SOCKET;
		return;
	}
	o->own_fd = open_again(fd);
	if (o->own_fd >= 0)
		o->fd = o->own_fd;
	else
		o->way = OUTLET_PIECES;
}

/* Whatever is pending. */
void outlet_close(struct outlet *o)
{
	if (o->own_fd >= 0)
		close(o->own_fd);
	free(o->bytes);
	*o = (struct outlet){.fd = -1, .own_fd = -1};
}

/* What is pending moves to the front; the buffer grows if that is not enough. */
char *outlet_reserve(struct outlet *o, size_t bytes)
{
	if (o->start) {
		memmove(o->bytes, o->bytes + o->start, outlet_pending(o));
		o->end -= o->start;
		o->start = 0;
	}
	size_t needed = o->end + bytes;
	if (needed > o->capacity) {
		size_t capacity = o->capacity ? o->capacity : OUTLET_FULL_BYTES;
		while (capacity < needed)
			capacity *= 2;
		char *grown = realloc(o->bytes, capacity);
		if (!grown)
			fatal(EXIT_INTERNAL, "output");
		o->bytes = grown;
		o->capacity = capacity;
	}
	return o->bytes + o->end;
}

/* A pipe that is writable takes PIPE_BUF bytes without waiting, unless somebody else is quicker. */
static ssize_t write_piece(int fd, const char *bytes, size_t length)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	if (poll(&ready, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, bytes, length < PIPE_BUF ? length : PIPE_BUF);
}

static ssize_t write_some(const struct outlet *o)
{
	const char *bytes = o->bytes + o->start;
	size_t length = outlet_pending(o);
	switch (o->way) {
	case OUTLET_PIECES: return write_piece(o->fd, bytes, length);
	case OUTLET_SOCKET: return send(o->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	default: return write(o->fd, bytes, length);
	}
}

/* A large item's memory is given back when it is written. */
static void empty(struct outlet *o)
{
	o->start = o->end = 0;
	if (o->capacity > 2 * OUTLET_FULL_BYTES) {
		free(o->bytes);
		o->bytes = NULL;
		o->capacity = 0;
	}
}

/* Until nothing is left, or nothing is taken. */
enum outlet_state outlet_flush(struct outlet *o)
{
	o->blocked = false;
	while (outlet_pending(o) && !o->error) {
		ssize_t written = write_some(o);
		if (written >= 0) {
			o->start += (size_t)written;
		} else if (errno == EAGAIN) {
			o->blocked = true;
			return OUTLET_BLOCKED;
		} else if (errno != EINTR) {
			o->error = errno;
		}
	}
	empty(o);
	return o->error ? OUTLET_FAILED : OUTLET_DONE;
}
