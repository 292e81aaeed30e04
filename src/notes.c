#include "notes.h"

#include "fatal.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* In the order of enum stop_reason. */
const char *stop_reason_name(enum stop_reason reason)
{
	static const char *const NAMES[] = {"none", "messages", "input", "eos", "duration",
		"timeout", "detached", "signal", "failed"};
	return NAMES[reason];
}

/* The first one may be filled at once. */
void notes_open(struct notes *n)
{
	sem_init(&n->free, 0, 1);
	n->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (n->fd < 0)
		fatal(EXIT_INTERNAL, "eventfd");
}

/* When neither side uses it any more. */
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

/* The reporter is woken. */
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
