/* content: where the bodies of psend's messages come from. Layer 5, for psend.c and outgoing.c.
 *
 * One body for all messages, which is in their template, or a line of standard input for each.
 */
#ifndef CONTENT_H
#define CONTENT_H

#include "lines.h"
#include "message.h"
#include "options.h"

#include <sys/queue.h>

/* A message in memory of its own. */
struct letter {
	STAILQ_ENTRY(letter) next;
	size_t reserve; /* room in front of it */
	size_t length;  /* of the message, or of as much of it as differs from others */
	size_t body_bytes;
	char bytes[]; /* the room, the message */
};

struct content {
	bool varies;            /* each message has its own */
	enum lines_state state; /* what was found last */
	struct lines lines;
	STAILQ_HEAD(, letter) returned; /* they come first */
	struct letter *lent;            /* the last that was taken from there */
};

/* The body that all messages have, or NULL; its length is o->content_size_bytes, which is set from
 * a file. To be freed. Ends the process with EXIT_USAGE if a file cannot be read. */
char *content_read(struct options *o);

/* C gives one body for all messages, or lines of standard input, with RESERVE bytes before each
 * that may be overwritten. content_destroy() frees what it has. */
void content_create(struct content *c, const struct options *o, size_t reserve);
void content_destroy(struct content *c);

/* Part of content_peek(). */
enum lines_state content_look(struct content *c);

/* Whether there is a body now, or later, or no more. Does not wait. */
static inline enum lines_state content_peek(struct content *c)
{
	return c->varies ? content_look(c) : LINES_READY;
}

/* The length of the body that there is. */
size_t content_next_bytes(const struct content *c);

/* Takes it, into T; valid until there is another call with C. */
void content_take(struct content *c, struct message_template *t);

/* The present message of T in memory of its own, as far as it differs from others; or any BYTES. */
struct letter *content_copy(const struct message_template *t);
struct letter *content_letter(const char *bytes, size_t length);

/* The message was not sent: its body comes again. C gets the letter. */
void content_return(struct content *c, struct letter *letter);

#endif
