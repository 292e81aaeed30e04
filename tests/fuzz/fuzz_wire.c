/* Feeds bytes to precv as a peer would: the program's own role, worker and engine run on this
 * thread, and are given one end of a pair of sockets. What must hold: no fault, no leak, an end
 * within a bounded number of turns, and sums that are sums.
 *
 * The input's first byte chooses precv's options, the second how many bytes arrive at a time; the
 * rest is what arrives, from the protocol's header on.
 */
#define _GNU_SOURCE
#include "wire_mutator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int precv_main(int argc, char **argv);
#undef _GNU_SOURCE /* it defines it as well */
#define main precv_main
#include "../../src/precv.c"
#undef main

#define HEAD_BYTES 2
/* Of the engine, for one input. Each turn makes progress or is a quiet one. */
#define TURNS_MAX 4000
/* So many without anything read or counted, and nothing will follow. */
#define QUIET_TURNS 8
#define WORDS_MAX   16
#define WORDS_BYTES 128

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int fuzz_thread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int fuzz_thread_join(pthread_t thread, void **result);
int fuzz_semaphore_wait(sem_t *semaphore);

static const char *const VARIANTS[] = {
	"--forever",
	"-m 5 --ack-frequency 3 --verify-sequence",
	"--forever --credit 2 --credit-low 1 --ignore-duplicates --outcome rejected",
	"--drain-batch 1 --ack-frequency 100 -m 1000",
	"--forever --max-frame 512 --session-window 2Ki --credit 2000",
	"--forever --receive-rate 1000000 --idle-timeout 1h",
	"--forever --reply --credit 4",
};
#define VARIANT_COUNT (sizeof VARIANTS / sizeof *VARIANTS)

/* What precv's main() makes of a command line, kept to be used again and again. Both structs stay
 * where they are in memory, and may point to themselves. */
static struct variant {
	char words[WORDS_BYTES]; /* of the command line; options point to them */
	struct options options;
	struct receiver receiver;
} variants[VARIANT_COUNT];
static struct options *the_options;
static struct receiver *the_receiver;
static const struct role *the_role;

static struct {
	const uint8_t *data;
	size_t size, piece;
	int fd; /* our end of the connection, or -1 */
	unsigned turns, quiet;
	uint64_t seen; /* what the engine had counted at the last turn */
	const struct engine_callbacks *inner;
} feed;

/* Ends the run, which libFuzzer reports with the input. */
static void require(bool condition)
{
	if (!condition)
		abort();
}

/* ---- in place of threads ---- */

static void hang_up(void)
{
	if (feed.fd >= 0)
		close(feed.fd);
	feed.fd = -1;
}

/* The engine gets one end of a pair of sockets, in place of what it would have accepted. */
static void connect_to(struct worker *w)
{
	int fds[2];
	require(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	feed.fd = fds[0];
	engine_adopt(&w->engine, fds[1]);
	feed.inner->listening(w, "socket", "0");
}

/* What is left of the input, piece by piece; then the end of it. */
static void feed_more(void)
{
	char answer[4096];
	if (feed.fd < 0)
		return;
	while (recv(feed.fd, answer, sizeof answer, MSG_DONTWAIT) > 0)
		;
	size_t count = feed.size < feed.piece ? feed.size : feed.piece;
	if (count) {
		ssize_t sent = send(feed.fd, feed.data, count, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN)
			feed.size = 0;
		if (sent > 0) {
			feed.data += sent;
			feed.size -= (size_t)sent;
			feed.quiet = 0;
		}
	}
	if (!feed.size)
		shutdown(feed.fd, SHUT_WR);
}

static void check_sums(const struct worker *w)
{
	const struct counters *n = &w->stats.n;
	require(n->reordered <= n->skipped);
	require(n->no_timestamp <= n->messages && n->no_sequence <= n->messages + n->duplicated);
	require(n->answers + n->unanswerable <= n->messages + n->duplicated);
	require(n->messages < UINT32_MAX && n->aborted < UINT32_MAX);
}

/* Feeds, lets the worker have its turn, and ends the run when nothing happens any more. */
static enum time_cause fed_turn(void *context, int64_t now_ns)
{
	struct worker *w = context;
	feed_more();
	enum time_cause cause = feed.inner->turn(context, now_ns);
	engine_count_frames(&w->engine);
	const struct counters *n = &w->stats.n;
	uint64_t seen = n->frames_in + n->frames_out + n->messages + n->aborted;
	feed.quiet = seen == feed.seen ? feed.quiet + 1 : 0;
	feed.seen = seen;
	check_sums(w);
	if (feed.quiet == QUIET_TURNS)
		worker_stop(w, STOP_SIGNAL);
	if (feed.quiet == 2 * QUIET_TURNS)
		hang_up();
	require(++feed.turns < TURNS_MAX);
	if (feed.quiet > 3 * QUIET_TURNS)
		engine_abandon(&w->engine);
	engine_turn_by(&w->engine, 0);
	return cause;
}

/* The worker's thread. */
int fuzz_thread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	struct worker *w = argument;
	(void)thread, (void)attributes;
	struct engine_callbacks callbacks = *w->engine.callbacks;
	feed.inner = w->engine.callbacks;
	callbacks.turn = fed_turn;
	w->engine.callbacks = &callbacks;
	connect_to(w);
	run(argument);
	return 0;
}

int fuzz_thread_join(pthread_t thread, void **result)
{
	(void)thread, (void)result;
	return 0;
}

/* Nobody reads the notes, so they are always free. */
int fuzz_semaphore_wait(sem_t *semaphore)
{
	(void)semaphore;
	return 0;
}

/* ---- in place of the reporter ---- */

/* Keeps what main() has prepared. */
int reporter_run(struct worker *worker, const struct options *options, const struct role *role,
	void *self, char **argv)
{
	(void)worker, (void)argv;
	the_options = (struct options *)options;
	the_receiver = self;
	the_role = role;
	return 0;
}

/* A command line's words. */
static void prepare(struct variant *v, const char *options)
{
	char *words[WORDS_MAX] = {"precv", "--listen", "127.0.0.1:0"};
	int count = 3;
	snprintf(v->words, sizeof v->words, "%s", options);
	for (char *word = strtok(v->words, " "); word; word = strtok(NULL, " "))
		words[count++] = word;
	if (the_options) {
		memset(the_options, 0, sizeof *the_options);
		memset(the_receiver, 0, sizeof *the_receiver);
	}
	precv_main(count, words);
	the_options->engine.host = NULL; /* connections are given to it */
	v->options = *the_options;
	v->receiver = *the_receiver;
}

/* Once. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	for (size_t i = 0; i < VARIANT_COUNT; i++)
		prepare(&variants[i], VARIANTS[i]);
	return 0;
}

/* Where PATTERN is for the first time behind FROM; NULL: nowhere. */
static const uint8_t *find(const uint8_t *from, const uint8_t *end, const uint8_t pattern[3])
{
	return memmem(from, (size_t)(end - from), pattern, 3);
}

/* Faults of libqpid-proton 0.37.0 itself, which we cannot prevent: they happen before we hear of
 * the frame.
 * - When a client names a second SASL mechanism, the first is not freed.
 * - A link attached with a handle of 2^31 or more may be attached again. The first handle is never
 *   forgotten, and used when the link is freed. */
static bool meets_known_fault(const uint8_t *data, size_t size)
{
	static const uint8_t INIT[] = {0x00, 0x53, 0x41}, ATTACH[] = {0x00, 0x53, 0x12};
	const uint8_t *end = data + size, *at = find(data, end, INIT);
	if (at && find(at + 1, end, INIT))
		return true;
	for (at = data; (at = find(at, end, ATTACH)); at++)
		for (const uint8_t *field = at; field < at + 64 && field + 1 < end; field++)
			if (field[0] == 0x70 && field[1] >= 0x80)
				return true;
	return false;
}

/* A run of precv from its start to its end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD_BYTES || meets_known_fault(data, size))
		return 0;
	const struct variant *v = &variants[data[0] % VARIANT_COUNT];
	feed.piece = data[1] ? data[1] * 16u : SIZE_MAX;
	feed.data = data + HEAD_BYTES;
	feed.size = size - HEAD_BYTES;
	feed.fd = -1;
	feed.turns = feed.quiet = 0;
	feed.seen = 0;
	*the_options = v->options;
	*the_receiver = v->receiver;
	worker_start(&the_receiver->worker, the_options, the_role, the_receiver);
	require(STAILQ_EMPTY(&the_receiver->links));
	require(TAILQ_EMPTY(&the_receiver->answering.links));
	worker_join(&the_receiver->worker);
	numbering_free_all(&the_receiver->numberings);
	hang_up();
	return 0;
}
