#define _GNU_SOURCE
#include "signals.h"

#include "fatal.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* One for the process: the thread looks at it as long as there is one. */
static struct {
	int signal_fd, orphan_fd;
	int end_fd;            /* readable when the thread is to end */
	int read_fd, write_fd; /* of what it tells */
	unsigned grace_s;
	pthread_t thread;
} signals;

#define NOTHING_MORE (-1)

/* What comes next: a signal, or the parent's end, of which only the first is told. A signal that
 * was sent before the parent ended is pending when that is seen, and comes first. */
static int next_number(void)
{
	struct pollfd fds[] = {{.fd = signals.signal_fd, .events = POLLIN},
		{.fd = signals.orphan_fd, .events = POLLIN},
		{.fd = signals.end_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	for (;;) {
		poll(fds, 3, -1);
		if (fds[2].revents)
			return NOTHING_MORE;
		if (read(signals.signal_fd, &info, sizeof info) == sizeof info)
			return (int)info.ssi_signo;
		if (fds[1].revents) {
			signals.orphan_fd = -1;
			return SIGNALS_ORPHAN;
		}
	}
}

/* Whether the run ends within its grace. */
static bool ends(void)
{
	struct pollfd end = {.fd = signals.end_fd, .events = POLLIN};
	return poll(&end, 1, (int)signals.grace_s * 1000) > 0;
}

static void *watch(void *unused)
{
	(void)unused;
	int first = 0, number;
	while ((number = next_number()) != NOTHING_MORE) {
		if (write(signals.write_fd, &number, sizeof number) != sizeof number)
			break; /* nobody could be told of more */
		if (first && number != SIGNALS_ORPHAN) {
			if (!ends())
				_exit(EXIT_BY_SIGNAL + first);
			break;
		}
		if (!first)
			first = number == SIGNALS_ORPHAN ? SIGHUP : number;
	}
	return NULL;
}

/* Threads inherit the mask. */
int signals_watch(int orphan_fd, unsigned grace_s)
{
	struct sigaction hangup;
	sigset_t set;
	int fds[2];
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	signals.end_fd = eventfd(0, EFD_CLOEXEC);
	if (signals.signal_fd < 0 || signals.end_fd < 0 || pipe2(fds, O_CLOEXEC))
		fatal(EXIT_INTERNAL, "signals");
	signals.orphan_fd = orphan_fd;
	signals.read_fd = fds[0];
	signals.write_fd = fds[1];
	signals.grace_s = grace_s;
	int error = pthread_create(&signals.thread, NULL, watch, NULL);
	if (error)
		fatalx(EXIT_INTERNAL, "cannot start a thread: %s", strerror(error));
	return signals.read_fd;
}

/* Signals stay blocked: the process is about to end. */
void signals_end(void)
{
	eventfd_write(signals.end_fd, 1);
	pthread_join(signals.thread, NULL);
	close(signals.signal_fd);
	close(signals.end_fd);
	close(signals.read_fd);
	close(signals.write_fd);
}
