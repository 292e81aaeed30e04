#define _GNU_SOURCE
#include "signals.h"

#include "fatal.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* One for the process: the thread looks at it as long as there is one. */
static struct {
	int signal_fd, orphan_fd, write_fd;
	unsigned grace_s;
} signals;

/* What comes next: a signal, or the parent's end, of which only the first is told. A signal that
 * was sent before the parent ended is pending when that is seen, and comes first. */
static int next_number(void)
{
	struct pollfd fds[] = {{.fd = signals.signal_fd, .events = POLLIN},
		{.fd = signals.orphan_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	for (;;) {
		poll(fds, 2, -1);
		if (read(signals.signal_fd, &info, sizeof info) == sizeof info)
			return (int)info.ssi_signo;
		if (fds[1].revents) {
			signals.orphan_fd = -1;
			return SIGNALS_ORPHAN;
		}
	}
}

static void *watch(void *unused)
{
	(void)unused;
	int first = 0;
	for (;;) {
		int number = next_number();
		if (write(signals.write_fd, &number, sizeof number) != sizeof number)
			break; /* there is no reader any more */
		if (first && number != SIGNALS_ORPHAN)
			break;
		if (!first)
			first = number == SIGNALS_ORPHAN ? SIGHUP : number;
	}
	sleep(signals.grace_s);
	_exit(EXIT_BY_SIGNAL + first);
}

/* The thread may outlive the run. */
int signals_watch(int orphan_fd, unsigned grace_s)
{
	struct sigaction hangup;
	sigset_t set;
	pthread_t thread;
	int fds[2];
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals.signal_fd < 0 || pipe2(fds, O_CLOEXEC))
		fatal(EXIT_INTERNAL, "signals");
	signals.orphan_fd = orphan_fd;
	signals.write_fd = fds[1];
	signals.grace_s = grace_s;
	int error = pthread_create(&thread, NULL, watch, NULL);
	if (error)
		fatalx(EXIT_INTERNAL, "cannot start a thread: %s", strerror(error));
	pthread_detach(thread);
	return fds[0];
}
