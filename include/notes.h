/* notes: what a worker tells its reporter, one at a time. Layer 4.
 *
 * The worker fills in a note and sends it; the reporter, to whom `fd` says that there is one, takes
 * it and gives it back. Until then the worker waits with the next.
 */
#ifndef NOTES_H
#define NOTES_H

#include "report.h"
#include "stats.h"

#include <semaphore.h>

enum stop_reason {
	STOP_NONE,
	STOP_MESSAGES, /* as many as asked for */
	STOP_INPUT,    /* all that there was to send */
	STOP_EOS,      /* precv: a sender has said that it was the last one */
	STOP_DURATION,
	STOP_TIMEOUT,  /* no traffic */
	STOP_DETACHED, /* the peers are gone */
	STOP_SIGNAL,
	STOP_FAILED,
};

const char *stop_reason_name(enum stop_reason reason);

enum note_kind { NOTE_READY, NOTE_BEGAN, NOTE_PERIOD, NOTE_ERROR, NOTE_END };

/* The fields behind `kind` are of the kinds named. */
struct note {
	enum note_kind kind;
	struct report_ready ready; /* READY */
	struct failure failure;    /* ERROR */
	int64_t at_ns;             /* BEGAN, PERIOD, END: monotonic; of a period, its end */
	bool warmup, partial;      /* PERIOD, END */
	struct stats stats;        /* PERIOD, END: all so far, busy time included */
	int64_t first_ns, last_ns; /* END: of the messages after the warm-up, monotonic; 0: none */
	enum stop_reason reason;   /* END */
	enum exit_code code;       /* END: of the run, signals not considered */
};

struct notes {
	int fd;     /* readable when there is a note */
	sem_t free; /* the reporter is done with the last one */
	struct note note;
};

/* Ends the process if there are no descriptors. notes_close() undoes it. */
void notes_open(struct notes *n);
void notes_close(struct notes *n);

/* For the worker: waits until the last note was taken; then the next one is the caller's to fill.
 */
struct note *notes_begin(struct notes *n, enum note_kind kind);
void notes_send(struct notes *n);

/* For the reporter: the note at hand after `fd` became readable; to be given back. */
const struct note *notes_take(struct notes *n);
void notes_done(struct notes *n);

#endif
