/* reporter: the main thread of a run: takes signals, asks for reports, prints them. Layer 4. */
#ifndef REPORTER_H
#define REPORTER_H

#include "options.h"
#include "worker.h"

/* Runs WORKER with ROLE to its end and returns the exit code of the process. */
int reporter_run(struct worker *worker, const struct options *options, const struct role *role,
	void *self, char **argv);

#endif
