#include "notes.h"

#include "fatal.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* For reports. */
const char *stop_reason_name(enum stop_reason reason)
{
	static const char *const NAMES[] = {"none", "messages", "input", "eos", "duration",
		"timeout", "detached", "signal", "failed"};
	return NAMES[reason];
}

/* There is none. */
void notes_open(struct notes *n)
{
	sem_init(&n->free, 0, 1);
	n->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (n->fd < 0)
		fatal(EXIT_INTERNAL, "eventfd");
}

/* After the worker's end. */
void notes_close(struct notes *n)
{
	sem_destroy(&n->free);
	close(n->fd);
}

/* A signal may interrupt the wait. */
struct note *notes_begin(struct notes *n, enum note_kind kind)
{
	while (sem_wait(&n->free))
		;
	n->note.kind = kind;
	return &n->note;
}

/* It is filled. */
void notes_send(struct notes *n)
{
	eventfd_write(n->fd, 1);
}

/* Takes one count off the descriptor. */
const struct note *notes_take(struct notes *n)
{
	eventfd_t count;
	eventfd_read(n->fd, &count);
	return &n->note;
}

/* The worker may write the next one. */
void notes_done(struct notes *n)
{
	sem_post(&n->free);
}
