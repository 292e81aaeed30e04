/* printer: where messages go that are printed and saved. Layer 5, for precv.c and incoming.c.
 *
 * Nothing waits for who reads it: what cannot be written yet is kept, and when that is much no more
 * messages should be taken until it is written.
 */
#ifndef PRINTER_H
#define PRINTER_H

#include "engine.h"
#include "options.h"
#include "outlet.h"
#include "text.h"

struct printer {
	bool content, headers; /* of each message, on standard output */
	struct text text;      /* of headers */
	struct outlet output;  /* standard output */
	struct outlet file;    /* of --save-content */
	const char *file_name; /* NULL: there is none */
};

/* Opens what O asks for; what cannot be opened ends the process. */
void printer_open(struct printer *p, const struct options *o);

/* Frees what P has. */
void printer_close(struct printer *p);

/* Whether there is anything to print or to save. */
static inline bool printer_is_used(const struct printer *p)
{
	return p->content || p->headers || p->file_name;
}

/* Whether no more should be put now, or ever. */
static inline bool printer_is_full(const struct printer *p)
{
	return outlet_full(&p->output) || outlet_full(&p->file) || p->output.error || p->file.error;
}

/* Takes a message of LENGTH bytes, and its body as text_body() has it. */
void printer_put(struct printer *p, const char *message, size_t length, const char *body,
	size_t body_length);

/* Writes what can be written, and has the engine's next turn come when more can be. False if that
 * is an error, of which FAILURE tells; once an error. */
bool printer_flush(struct printer *p, struct engine *e, struct failure *failure);

/* Writes all, however long that takes, unless ABANDON_FD becomes readable. False as above. */
bool printer_drain(struct printer *p, int abandon_fd, struct failure *failure);

#endif
