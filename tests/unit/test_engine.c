/* engine: what it can do without a network: sockets that are given to it, descriptors of the
 * program's. */
#include "engine.h"

#include "clock.h"
#include "security.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_NS (5 * NS_PER_S)

/* A program that ends when it has been told of a failure, or when its descriptor is ready. */
struct program {
	struct engine engine;
	struct stats stats;
	int fd;       /* to wait for; -1: none */
	int others;   /* more of them, which are never ready */
	short events; /* of fd */
	unsigned turns, failures;
	struct failure failure;
	int64_t began_ns;
};

static enum time_cause turn(void *context, int64_t now_ns)
{
	struct program *p = context;
	p->turns++;
	struct pollfd ready = {.fd = p->fd, .events = p->events};
	bool done = p->fd >= 0 && poll(&ready, 1, 0) > 0;
	if (done || now_ns > p->began_ns + DEADLINE_NS
		|| (p->failures && !p->engine.connection_count)) {
		engine_close(&p->engine);
		return TIME_IDLE;
	}
	engine_turn_by(&p->engine, p->began_ns + DEADLINE_NS + 1);
	for (int i = 0; i < p->others; i++)
		engine_turn_when(&p->engine, -1, POLLIN);
	if (p->fd >= 0)
		engine_turn_when(&p->engine, p->fd, p->events);
	return TIME_PACING;
}

static void failed(void *context, const struct failure *failure)
{
	struct program *p = context;
	p->failures++;
	p->failure = *failure;
}

static const struct engine_callbacks CALLBACKS = {.turn = turn, .failed = failed};
static const struct security SECURITY = {.options.listen = true};
static const struct engine_options OPTIONS = {
	.listen = true,
	.container_id = "test",
	.security = &SECURITY,
	.connect_timeout_ns = 10 * NS_PER_S,
};

static struct program *create(void)
{
	struct program *p = calloc(1, sizeof *p);
	assert_non_null(p);
	p->fd = -1;
	stats_reset(&p->stats, TIMINGS_ALL);
	engine_create(&p->engine, &OPTIONS, &CALLBACKS, p, &p->stats);
	p->began_ns = clock_monotonic_ns();
	return p;
}

/* Runs it to its end. Returns how long that took. */
static int64_t run(struct program *p)
{
	engine_run(&p->engine);
	return clock_monotonic_ns() - p->began_ns;
}

static void destroy(struct program *p)
{
	engine_destroy(&p->engine);
	free(p);
}

/* A socket that is connected is served as if it had been accepted. */
static void test_adopted_socket(void **state)
{
	(void)state;
	struct program *p = create();
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	static const char BYTES[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	assert_int_equal(write(ends[1], BYTES, sizeof BYTES), sizeof BYTES);
	engine_adopt(&p->engine, ends[0]);
	assert_true(run(p) < DEADLINE_NS);
	assert_int_equal(p->failures, 1);
	assert_int_equal(p->failure.code, EXIT_DONE); /* nobody whom we know */
	assert_string_equal(p->failure.what, "connection from a socket");
	char answer[8];
	assert_int_equal(read(ends[1], answer, sizeof answer), sizeof answer);
	assert_memory_equal(answer, "AMQP\0\1\0\0", sizeof answer);
	close(ends[1]);
	destroy(p);
}

/* One whose other end is closed. */
static void test_adopted_socket_ends(void **state)
{
	(void)state;
	struct program *p = create();
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	engine_adopt(&p->engine, ends[0]);
	close(ends[1]);
	assert_true(run(p) < DEADLINE_NS);
	assert_int_equal(p->failures, 1);
	destroy(p);
}

/* A descriptor of the program's ends a wait, which is booked as what the program says it is for. */
static void test_turn_when_readable(void **state)
{
	(void)state;
	for (int others = 0; others < 4; others++) {
		struct program *p = create();
		int ends[2];
		assert_int_equal(pipe(ends), 0);
		p->fd = ends[0];
		p->events = POLLIN;
		p->others = others;
		pid_t child = fork();
		if (!child) {
			usleep(50000);
			_exit(write(ends[1], "x", 1) != 1);
		}
		int64_t took_ns = run(p);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_true(took_ns < DEADLINE_NS);
		assert_in_range(p->turns, 2, 10);
		assert_in_range(p->stats.n.time_ns[TIME_PACING], NS_PER_MS, took_ns);
		close(ends[0]);
		close(ends[1]);
		destroy(p);
	}
}

/* One that is ready from the start is waited for no longer. */
static void test_turn_when_writable(void **state)
{
	(void)state;
	struct program *p = create();
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	p->fd = ends[1];
	p->events = POLLOUT;
	assert_true(run(p) < DEADLINE_NS);
	assert_int_equal(p->turns > 0, 1);
	close(ends[0]);
	close(ends[1]);
	destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adopted_socket),
		cmocka_unit_test(test_adopted_socket_ends),
		cmocka_unit_test(test_turn_when_readable),
		cmocka_unit_test(test_turn_when_writable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
