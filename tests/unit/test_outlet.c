/* outlet: pipes, sockets and files that are slow, full or closed. */
#define _GNU_SOURCE
#include "outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Two ends: what is written to the one is read from the other. */
struct ends {
	int read, write;
};

static struct ends open_pipe(void)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	return (struct ends){fds[0], fds[1]};
}

static struct ends open_sockets(void)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	return (struct ends){fds[0], fds[1]};
}

/* Lines that tell their number. */
static void put_lines(struct outlet *o, unsigned first, unsigned last)
{
	char line[24];
	for (unsigned i = first; i <= last; i++)
		outlet_put(o, line, (size_t)snprintf(line, sizeof line, "%07u", i), true);
}

/* Reads what is there, and checks that it goes on behind *BYTES of lines. Returns whether there was
 * any. */
static bool read_lines(int fd, size_t *bytes)
{
	static char buffer[16 * 1024];
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	if (!poll(&ready, 1, 0))
		return false;
	ssize_t got = read(fd, buffer, sizeof buffer);
	for (ssize_t i = 0; i < got; i++, ++*bytes) {
		char line[24];
		snprintf(line, sizeof line, "%07u\n", (unsigned)(*bytes / 8 + 1));
		assert_int_equal(buffer[i], line[*bytes % 8]);
	}
	return got > 0;
}

/* ---- who reads slowly ---- */

/* Everything comes, in order, and no call waits: this is one thread. */
static void check_slow_reader(struct ends ends, bool pieces)
{
	enum { LINES = 1000 };
	struct outlet o;
	size_t bytes = 0;
	unsigned lines = 0;
	outlet_open(&o, ends.write);
	if (pieces)
		o.way = OUTLET_PIECES;
	for (; !outlet_full(&o); lines += LINES)
		put_lines(&o, lines + 1, lines + LINES);
	assert_int_equal(fcntl(ends.write, F_GETFL) & O_NONBLOCK, 0);
	for (int i = 0; i < 10; i++, lines += LINES) {
		assert_int_equal(outlet_flush(&o), OUTLET_BLOCKED);
		assert_true(read_lines(ends.read, &bytes));
		put_lines(&o, lines + 1, lines + LINES);
	}
	while (outlet_flush(&o) == OUTLET_BLOCKED)
		assert_true(read_lines(ends.read, &bytes));
	while (read_lines(ends.read, &bytes))
		;
	assert_int_equal(bytes, (size_t)lines * 8);
	assert_int_equal(outlet_pending(&o), 0);
	outlet_close(&o);
	close(ends.read);
	close(ends.write);
}

static void test_a_pipe_may_be_slow(void **state)
{
	(void)state;
	check_slow_reader(open_pipe(), false);
}

/* Where /proc does not open it again. */
static void test_a_pipe_may_be_slow_that_others_use(void **state)
{
	(void)state;
	struct ends ends = open_pipe();
	check_slow_reader(ends, true);
}

static void test_a_socket_may_be_slow(void **state)
{
	(void)state;
	check_slow_reader(open_sockets(), false);
}

/* ---- what is written when ---- */

/* Much, at once; little, when it is flushed. */
static void test_little_waits_for_more(void **state)
{
	(void)state;
	struct ends ends = open_pipe();
	struct outlet o;
	size_t bytes = 0;
	outlet_open(&o, ends.write);
	put_lines(&o, 1, OUTLET_WRITE_BYTES / 8 - 1);
	assert_false(read_lines(ends.read, &bytes));
	put_lines(&o, OUTLET_WRITE_BYTES / 8, OUTLET_WRITE_BYTES / 8 + 1);
	while (read_lines(ends.read, &bytes))
		;
	assert_int_equal(bytes, OUTLET_WRITE_BYTES);
	assert_int_equal(outlet_flush(&o), OUTLET_DONE);
	assert_true(read_lines(ends.read, &bytes));
	assert_int_equal(bytes, OUTLET_WRITE_BYTES + 8);
	outlet_close(&o);
	close(ends.read);
	close(ends.write);
}

/* Its memory is given back. */
static void test_one_large_item_fits(void **state)
{
	(void)state;
	enum { ITEM_BYTES = 10 << 20 };
	FILE *file = tmpfile();
	struct outlet o;
	char *item = calloc(1, ITEM_BYTES);
	outlet_open(&o, fileno(file));
	outlet_put(&o, "", 0, false);
	outlet_put(&o, item, ITEM_BYTES, true);
	assert_int_equal(outlet_flush(&o), OUTLET_DONE);
	assert_int_equal(lseek(fileno(file), 0, SEEK_END), ITEM_BYTES + 1);
	assert_in_range(o.capacity, 0, 2 * OUTLET_FULL_BYTES);
	free(item);
	outlet_close(&o);
	fclose(file);
}

/* ---- errors ---- */

/* They stay, and what is put afterwards costs nothing. */
static void check_failing(int fd, int error)
{
	struct outlet o;
	outlet_open(&o, fd);
	put_lines(&o, 1, 1);
	assert_int_equal(outlet_flush(&o), OUTLET_FAILED);
	assert_int_equal(o.error, error);
	put_lines(&o, 1, 1000000);
	assert_in_range(o.capacity, 0, 2 * OUTLET_FULL_BYTES);
	assert_int_equal(outlet_flush(&o), OUTLET_FAILED);
	assert_int_equal(o.error, error);
	outlet_close(&o);
	close(fd);
}

static void test_errors_are_kept(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	struct ends ends = open_pipe();
	close(ends.read);
	check_failing(ends.write, EPIPE);
	ends = open_sockets();
	close(ends.read);
	check_failing(ends.write, EPIPE);
	check_failing(open("/dev/full", O_WRONLY), ENOSPC);
	check_failing(open("/dev/zero", O_RDONLY), EBADF);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pipe_may_be_slow),
		cmocka_unit_test(test_a_pipe_may_be_slow_that_others_use),
		cmocka_unit_test(test_a_socket_may_be_slow),
		cmocka_unit_test(test_little_waits_for_more),
		cmocka_unit_test(test_one_large_item_fits),
		cmocka_unit_test(test_errors_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
