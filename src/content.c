#define _GNU_SOURCE
#include "content.h"

#include "fatal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)

/* ---- one for all ---- */

/* May be a pipe: its length is known at its end. */
static char *read_file(const char *name, uint64_t *length)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fatal(EXIT_USAGE, "--content-file: %s", name);
	char *bytes = NULL;
	size_t capacity = 0;
	*length = 0;
	for (;;) {
		if (capacity - *length < READ_BYTES) {
			capacity = 2 * capacity + READ_BYTES;
			bytes = realloc(bytes, capacity);
		}
		if (!bytes)
			fatal(EXIT_INTERNAL, "--content-file: %s", name);
		ssize_t got = read(fd, bytes + *length, READ_BYTES);
		if (got < 0 && errno != EINTR)
			fatal(EXIT_USAGE, "--content-file: %s", name);
		if (got == 0)
			break;
		*length += got > 0 ? (uint64_t)got : 0;
		if (*length > OPTIONS_CONTENT_MAX)
			fatalx(EXIT_USAGE, "--content-file: %s: is above %d bytes", name,
				OPTIONS_CONTENT_MAX);
	}
	close(fd);
	return bytes;
}

/* With room for one byte at least: malloc(0) may be NULL. */
char *content_read(struct options *o)
{
	if (o->content_stdin || o->check_content || o->content_map.count)
		return NULL;
	if (o->content_file)
		return read_file(o->content_file, &o->content_size_bytes);
	char *bytes = malloc(o->content_size_bytes + 1);
	if (!bytes)
		fatal(EXIT_INTERNAL, "--content-size");
	if (o->content_string)
		memcpy(bytes, o->content_string, o->content_size_bytes);
	else
		memset(bytes, 'X', o->content_size_bytes);
	return bytes;
}

/* ---- one for each ---- */

/* Reading begins with the first content_look(). */
void content_create(struct content *c, const struct options *o, size_t reserve)
{
	*c = (struct content){.varies = o->content_stdin, .state = LINES_WAITING};
	STAILQ_INIT(&c->returned);
	if (c->varies)
		lines_create(&c->lines, STDIN_FILENO, reserve);
}

/* With letters that came back and were not sent. */
void content_destroy(struct content *c)
{
	struct letter *letter;
	while ((letter = STAILQ_FIRST(&c->returned))) {
		STAILQ_REMOVE_HEAD(&c->returned, next);
		free(letter);
	}
	free(c->lent);
	if (c->varies)
		lines_destroy(&c->lines);
}

/* Those that came back are older. */
enum lines_state content_look(struct content *c)
{
	c->state = STAILQ_EMPTY(&c->returned) ? lines_peek(&c->lines) : LINES_READY;
	return c->state;
}

/* In the order of content_take(): what came back first. */
size_t content_next_bytes(const struct content *c)
{
	const struct letter *letter = STAILQ_FIRST(&c->returned);
	return letter ? letter->body_bytes : c->lines.line_bytes;
}

/* The message is made around it. */
void content_take(struct content *c, struct message_template *t)
{
	struct letter *letter = STAILQ_FIRST(&c->returned);
	if (!letter) {
		message_set_body(t, c->lines.line, c->lines.line_bytes);
		lines_take(&c->lines);
		return;
	}
	STAILQ_REMOVE_HEAD(&c->returned, next);
	free(c->lent);
	c->lent = letter;
	char *end = letter->bytes + letter->reserve + letter->length;
	message_set_body(t, end - letter->body_bytes, letter->body_bytes);
}

static struct letter *make_letter(const char *bytes, size_t length, size_t reserve)
{
	struct letter *letter = malloc(sizeof *letter + reserve + length);
	if (!letter)
		fatal(EXIT_INTERNAL, "message of %zu bytes", length);
	*letter = (struct letter){.reserve = reserve, .length = length};
	memcpy(letter->bytes + reserve, bytes, length);
	return letter;
}

/* With room for another head: it may be sent as another message. */
struct letter *content_copy(const struct message_template *t)
{
	struct letter *letter = make_letter(t->bytes, t->own_bytes, t->reserve);
	letter->body_bytes = t->content_bytes;
	return letter;
}

/* That is not done with others. */
struct letter *content_letter(const char *bytes, size_t length)
{
	return make_letter(bytes, length, 0);
}

/* In the order in which they come back. */
void content_return(struct content *c, struct letter *letter)
{
	if (!c->varies) {
		free(letter);
		return;
	}
	STAILQ_INSERT_TAIL(&c->returned, letter, next);
	c->state = LINES_READY;
}
