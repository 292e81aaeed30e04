#define _GNU_SOURCE
#include "parent.h"

#include "fatal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* One for the process: the thread looks at it as long as there is one. */
static struct {
	int fd;
	int gone_fd;
	unsigned grace_s;
} parent;

/* Waits for what comes from the parent, and drops it. False if that is its end. A read may block,
 * when somebody else reads too. */
static bool lives(int fd)
{
	char dropped[4096];
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	if (poll(&poll_fd, 1, -1) < 0)
		return errno == EINTR;
	if (!(poll_fd.revents & POLLIN))
		return false;
	ssize_t size = read(fd, dropped, sizeof dropped);
	return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

static void *watch(void *unused)
{
	(void)unused;
	while (lives(parent.fd))
		;
	alarm(parent.grace_s);
	eventfd_write(parent.gone_fd, 1);
	return NULL;
}

/* Signals stay with the main thread. Who started us may have blocked or ignored SIGALRM. */
int parent_watch(int fd, unsigned grace_s)
{
	sigset_t all, ours;
	pthread_t thread;
	parent.fd = fd;
	parent.grace_s = grace_s;
	parent.gone_fd = eventfd(0, EFD_CLOEXEC);
	if (parent.gone_fd < 0)
		fatal(EXIT_INTERNAL, "eventfd");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &ours);
	int error = pthread_create(&thread, NULL, watch, NULL);
	if (error)
		fatalx(EXIT_INTERNAL, "cannot start a thread: %s", strerror(error));
	pthread_detach(thread);
	signal(SIGALRM, SIG_DFL);
	sigdelset(&ours, SIGALRM);
	pthread_sigmask(SIG_SETMASK, &ours, NULL);
	return parent.gone_fd;
}
