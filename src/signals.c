#define _GNU_SOURCE
#include "signals.h"

#include "fatal.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* One for the process: the thread looks at it as long as there is one. */
static struct {
	sigset_t set;
	int write_fd;
	unsigned grace_s;
} signals;

static void *watch(void *unused)
{
	(void)unused;
	int first = 0;
	for (;;) {
		int number = sigwaitinfo(&signals.set, NULL);
		if (number < 0)
			continue; /* interrupted by one that is none of ours, as a debugger's */
		if (write(signals.write_fd, &number, sizeof number) != sizeof number || first)
			break; /* a pipe that has not taken all of them is not read any more */
		first = number;
	}
	sleep(signals.grace_s);
	_exit(EXIT_BY_SIGNAL + first);
}

/* The thread may outlive the run. */
int signals_watch(unsigned grace_s)
{
	struct sigaction hangup;
	pthread_t thread;
	int fds[2];
	sigemptyset(&signals.set);
	sigaddset(&signals.set, SIGINT);
	sigaddset(&signals.set, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(&signals.set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals.set, NULL);
	if (pipe2(fds, O_CLOEXEC))
		fatal(EXIT_INTERNAL, "signals");
	signals.write_fd = fds[1];
	signals.grace_s = grace_s;
	int error = pthread_create(&thread, NULL, watch, NULL);
	if (error)
		fatalx(EXIT_INTERNAL, "cannot start a thread: %s", strerror(error));
	pthread_detach(thread);
	return fds[0];
}
