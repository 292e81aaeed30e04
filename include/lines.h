/* lines: a descriptor that is read line by line and never waited for. Layer 0.
 *
 * A line ends at a newline, which is not part of it; everything else is, carriage returns and NUL
 * bytes too. What follows the last newline is a line if it is not empty.
 *
 * The descriptor is left in blocking mode, as others may share it: it is read only when poll() says
 * that something is there. So nobody else may read from it meanwhile.
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>
#include <stddef.h>

/* A longer line is an error, if not said otherwise. */
#define LINES_MAX_BYTES ((size_t)1 << 30)

enum lines_state {
	LINES_READY,   /* there is a line */
	LINES_WAITING, /* not yet; there will be when the descriptor can be read, or ends */
	LINES_ENDED,   /* all have been taken */
};

struct lines {
	int fd;
	size_t longest; /* line that is not an error */
	size_t reserve; /* bytes before each line that may be overwritten */
	char *buffer;   /* the reserve, then room for `capacity` bytes */
	size_t capacity;
	size_t begin, end; /* what is read and not taken, in the buffer behind the reserve */
	size_t searched;   /* from `begin` on: there is no newline in so many bytes */
	bool ended;        /* nothing more will be read */
	int error;         /* errno of the read that failed, or 0 */

	/* while the state is LINES_READY */
	char *line;
	size_t line_bytes;
};

/* L reads FD, and keeps RESERVE bytes before each line for its user. Ends the process if there is
 * no memory. lines_destroy() frees it, and leaves FD open. */
void lines_create(struct lines *l, int fd, size_t reserve);
void lines_destroy(struct lines *l);

/* Finds the next line; reads no more than needed, and only so much that it never takes long. The
 * line stays where it is, and the next one, until it was taken and this is called again. */
enum lines_state lines_peek(struct lines *l);

/* Done with the line. */
void lines_take(struct lines *l);

#endif
