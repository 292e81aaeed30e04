#define _GNU_SOURCE
#include "lines.h"

#include "fatal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)       /* at a time: what a pipe holds */
#define TURN_BYTES (1024 * 1024)     /* in one call, when a line does not end */
#define KEEP_BYTES (16 * READ_BYTES) /* a buffer that was longer is given back after use */

static void resize(struct lines *l, size_t capacity)
{
	l->buffer = realloc(l->buffer, l->reserve + capacity);
	if (!l->buffer)
		fatal(EXIT_INTERNAL, "a line of %zu bytes", l->end - l->begin);
	l->capacity = capacity;
}

/* Reading begins with the first lines_peek(). */
void lines_create(struct lines *l, int fd, size_t reserve)
{
	*l = (struct lines){.fd = fd, .longest = LINES_MAX_BYTES, .reserve = reserve};
	resize(l, 2 * READ_BYTES);
}

/* The line, which is in the buffer, goes with it. */
void lines_destroy(struct lines *l)
{
	free(l->buffer);
	*l = (struct lines){.fd = -1, .ended = true};
}

static char *content(const struct lines *l)
{
	return l->buffer + l->reserve;
}

/* Makes room for one read behind what is there. */
static void make_room(struct lines *l)
{
	size_t length = l->end - l->begin;
	if (l->begin) {
		memmove(content(l), content(l) + l->begin, length);
		l->begin = 0;
		l->end = length;
	}
	if (!length && l->capacity > KEEP_BYTES)
		resize(l, 2 * READ_BYTES);
	if (l->capacity - length < READ_BYTES)
		resize(l, 2 * l->capacity);
}

static void fail(struct lines *l, int error)
{
	l->error = error;
	l->ended = true;
}

/* Reads once, if that does not wait. False if there was nothing to read, now or ever. */
static bool read_some(struct lines *l)
{
	struct pollfd ready = {.fd = l->fd, .events = POLLIN};
	if (l->ended || poll(&ready, 1, 0) <= 0)
		return false;
	make_room(l);
	ssize_t got = read(l->fd, content(l) + l->end, READ_BYTES);
	if (got > 0)
		l->end += (size_t)got;
	else if (got == 0)
		l->ended = true;
	else if (errno != EAGAIN && errno != EINTR)
		fail(l, errno);
	return got > 0;
}

/* Whether there is a line in what was read. */
static bool find_line(struct lines *l)
{
	size_t length = l->end - l->begin;
	l->line = content(l) + l->begin;
	char *newline = memchr(l->line + l->searched, '\n', length - l->searched);
	l->searched = length;
	if (newline)
		length = (size_t)(newline - l->line);
	if (length > l->longest) {
		fail(l, EMSGSIZE);
		l->end = l->begin;
		l->searched = 0;
		return false;
	}
	l->line_bytes = length;
	return newline || (l->ended && length);
}

/* From what was read before, if it can. */
enum lines_state lines_peek(struct lines *l)
{
	if (l->line)
		return LINES_READY;
	size_t read_bytes = 0;
	for (;;) {
		if (find_line(l))
			return LINES_READY;
		l->line = NULL;
		if (l->ended)
			return LINES_ENDED;
		if (read_bytes >= TURN_BYTES)
			return LINES_WAITING;
		if (read_some(l))
			read_bytes += READ_BYTES;
		else if (!l->ended)
			return LINES_WAITING;
	}
}

/* With its newline, if it had one. */
void lines_take(struct lines *l)
{
	l->begin += l->line_bytes + (l->begin + l->line_bytes < l->end);
	l->searched = 0;
	l->line = NULL;
}
