/* ping_pong: the least that a round trip by libqpid-proton itself can take.
 *
 *	ping_pong serve                 listens on 127.0.0.1, prints the port, and sends back what comes
 *	ping_pong ask PORT COUNT SIZE   sends a message of SIZE bytes COUNT times, one at a time, and
 *	                                prints the percentiles of the round trips, in ns
 *
 * The bare connection driver on a socket that is read again and again: no reactor, no options, no
 * statistics but the times, two links in one session, pre-settled, the same bytes every time. What
 * psend and precv take beyond that is theirs.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <proton/connection.h>
#include <proton/connection_driver.h>
#include <proton/delivery.h>
#include <proton/link.h>
#include <proton/message.h>
#include <proton/session.h>
#include <proton/terminus.h>
#include <proton/transport.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WINDOW  1000 /* credit, renewed at half */
#define WARM_UP 1000 /* round trips that are not timed */

static bool asks;
static uint64_t wanted, sent, answered;
static char bytes[1 << 16]; /* the encoded message, or the one that is sent back */
static size_t length;
static pn_link_t *outgoing, *incoming;
static int64_t sent_ns;
static int64_t *times_ns;

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void encode(size_t size)
{
	static char body[sizeof bytes / 2];
	pn_message_t *message = pn_message();
	length = sizeof bytes;
	pn_data_put_binary(pn_message_body(message), pn_bytes(size, body));
	if (size > sizeof body || pn_message_encode(message, bytes, &length))
		die("message");
	pn_message_free(message);
}

static void send_one(void)
{
	pn_delivery_t *d = pn_delivery(outgoing, pn_dtag((const char *)&sent, sizeof sent));
	pn_link_send(outgoing, bytes, length);
	pn_delivery_settle(d);
	sent++;
}

/* The next one, or the end. */
static void ask(pn_connection_t *c)
{
	if (answered == wanted) {
		pn_connection_close(c);
		return;
	}
	sent_ns = now_ns();
	send_one();
}

static void receive(pn_connection_t *c, pn_delivery_t *d)
{
	if (pn_delivery_link(d) != incoming || pn_delivery_partial(d))
		return;
	length = (size_t)pn_link_recv(incoming, bytes, sizeof bytes);
	pn_delivery_settle(d);
	if (pn_link_credit(incoming) <= WINDOW / 2)
		pn_link_flow(incoming, WINDOW / 2);
	if (!asks) {
		send_one();
		return;
	}
	times_ns[answered++] = now_ns() - sent_ns;
	ask(c);
}

static void open_links(pn_connection_t *c)
{
	pn_connection_open(c);
	pn_session_t *session = pn_session(c);
	pn_session_open(session);
	outgoing = pn_sender(session, "there");
	incoming = pn_receiver(session, "back");
	pn_terminus_set_address(pn_link_target(outgoing), "there");
	pn_terminus_set_address(pn_link_source(incoming), "back");
	pn_link_open(incoming);
	pn_link_open(outgoing);
	pn_link_flow(incoming, WINDOW);
}

static void accept_link(pn_link_t *link)
{
	pn_link_open(link);
	if (pn_link_is_sender(link)) {
		outgoing = link;
	} else {
		incoming = link;
		pn_link_flow(link, WINDOW);
	}
}

static void handle(pn_connection_t *c, pn_event_t *e)
{
	switch (pn_event_type(e)) {
	case PN_CONNECTION_INIT:
		if (asks)
			open_links(c);
		break;
	case PN_CONNECTION_REMOTE_OPEN:
		if (!asks)
			pn_connection_open(c);
		break;
	case PN_SESSION_REMOTE_OPEN:
		if (!asks)
			pn_session_open(pn_event_session(e));
		break;
	case PN_LINK_REMOTE_OPEN:
		if (!asks)
			accept_link(pn_event_link(e));
		break;
	case PN_LINK_FLOW:
		if (asks && !sent && pn_event_link(e) == outgoing)
			ask(c);
		break;
	case PN_DELIVERY: receive(c, pn_event_delivery(e)); break;
	case PN_CONNECTION_REMOTE_CLOSE: pn_connection_close(c); break;
	default: break;
	}
}

/* A connected socket that never blocks. */
static int connect_to(const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		die("socket");
	if (asks) {
		a.sin_port = htons((uint16_t)atoi(port));
		if (connect(fd, (struct sockaddr *)&a, sizeof a))
			die("connect");
	} else {
		int listener = fd;
		if (bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 1)
			|| getsockname(listener, (struct sockaddr *)&a, &size))
			die("listen");
		printf("%d\n", ntohs(a.sin_port));
		fflush(stdout);
		if ((fd = accept(listener, NULL, NULL)) < 0)
			die("accept");
		close(listener);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return fd;
}

/* True if there is nothing to be read now. */
static bool read_some(pn_connection_driver_t *driver, int fd)
{
	pn_rwbytes_t room = pn_connection_driver_read_buffer(driver);
	if (!room.size)
		return true;
	ssize_t got = read(fd, room.start, room.size);
	if (got > 0)
		pn_connection_driver_read_done(driver, (size_t)got);
	else if (got == 0 || errno != EAGAIN)
		pn_connection_driver_read_close(driver);
	return got < 0;
}

static void write_some(pn_connection_driver_t *driver, int fd)
{
	pn_bytes_t pending = pn_connection_driver_write_buffer(driver);
	if (!pending.size)
		return;
	ssize_t done = send(fd, pending.start, pending.size, MSG_NOSIGNAL);
	if (done > 0)
		pn_connection_driver_write_done(driver, (size_t)done);
	else if (done < 0 && errno != EAGAIN)
		pn_connection_driver_write_close(driver);
}

static void run(int fd)
{
	pn_connection_driver_t driver;
	if (pn_connection_driver_init(&driver, NULL, NULL))
		die("driver");
	if (!asks)
		pn_transport_set_server(driver.transport);
	while (!pn_connection_driver_finished(&driver)) {
		pn_event_t *event;
		while ((event = pn_connection_driver_next_event(&driver)))
			handle(driver.connection, event);
		write_some(&driver, fd);
		read_some(&driver, fd);
	}
	pn_connection_driver_destroy(&driver);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void print_percentiles(void)
{
	static const double PERCENTS[] = {50, 90, 99, 99.9};
	if (answered <= WARM_UP)
		die("too few round trips");
	uint64_t count = answered - WARM_UP;
	int64_t *timed = times_ns + WARM_UP;
	qsort(timed, count, sizeof *timed, compare);
	for (size_t i = 0; i < sizeof PERCENTS / sizeof *PERCENTS; i++)
		printf("p%g %" PRId64 "\n", PERCENTS[i],
			timed[(uint64_t)((double)(count - 1) * PERCENTS[i] / 100)]);
}

int main(int argc, char **argv)
{
	asks = argc == 5 && !strcmp(argv[1], "ask");
	if (!asks && (argc != 2 || strcmp(argv[1], "serve"))) {
		fprintf(stderr, "usage: ping_pong serve | ask PORT COUNT SIZE\n");
		return 64;
	}
	if (asks) {
		wanted = strtoull(argv[3], NULL, 10);
		times_ns = calloc(wanted + 1, sizeof *times_ns);
		encode(strtoull(argv[4], NULL, 10));
	}
	run(connect_to(argv[2]));
	if (asks)
		print_percentiles();
	return 0;
}
