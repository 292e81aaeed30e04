/* outlet: a descriptor that is written without ever waiting for who reads it. Layer 0.
 *
 * What is put is kept until the descriptor takes it. A pipe, a terminal or a socket may be shared
 * with others, whose writes would fail if it were made non-blocking: so it is opened once more,
 * through /proc, and where that is refused a piece is written that a pipe takes as a whole when it
 * takes any. A regular file always takes, at the speed of the disk.
 */
#ifndef OUTLET_H
#define OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define OUTLET_WRITE_BYTES (64 * 1024)  /* so much is written without being asked to */
#define OUTLET_FULL_BYTES  (256 * 1024) /* nothing more should be put: one more item always fits */

struct outlet {
	int fd;     /* to write to; -1: closed, or not opened */
	int own_fd; /* ours to close; -1: none */
	enum { OUTLET_WHOLE, OUTLET_PIECES, OUTLET_SOCKET } way;
	bool blocked; /* it takes no more until it is flushed again */
	int error;    /* errno of the write that failed; 0: none has */
	char *bytes;  /* those in [start, end) are pending */
	size_t start, end, capacity;
};

enum outlet_state { OUTLET_DONE, OUTLET_BLOCKED, OUTLET_FAILED };

/* O writes to FD, which stays the caller's. */
void outlet_open(struct outlet *o, int fd);

/* Frees what O has; pending bytes are lost. */
void outlet_close(struct outlet *o);

/* Room for BYTES more, of which the caller fills as many as it likes and adds them to `end`. */
char *outlet_reserve(struct outlet *o, size_t bytes);

/* Writes what can be written. Once failed, it stays so. */
enum outlet_state outlet_flush(struct outlet *o);

/* Bytes that were put and not yet written. */
static inline size_t outlet_pending(const struct outlet *o)
{
	return o->end - o->start;
}

static inline bool outlet_full(const struct outlet *o)
{
	return outlet_pending(o) >= OUTLET_FULL_BYTES;
}

/* Takes a copy of LENGTH bytes and, if EOL, a newline. Bytes for one that failed are dropped. */
static inline void outlet_put(struct outlet *o, const char *bytes, size_t length, bool eol)
{
	char *to = o->bytes + o->end;
	if (__builtin_expect(o->capacity - o->end <= length, 0))
		to = outlet_reserve(o, length + 1);
	memcpy(to, bytes, length);
	if (eol)
		to[length] = '\n';
	o->end += length + eol;
	if (__builtin_expect(outlet_pending(o) >= OUTLET_WRITE_BYTES && !o->blocked, 0))
		outlet_flush(o);
}

#endif
