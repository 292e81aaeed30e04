/* dialer: from a host's name to a socket that is connected to it. Layer 3.
 *
 * Names are looked up by a thread of the C library, so that a name server which does not answer
 * blocks nothing. The addresses are tried as RFC 8305 ("happy eyeballs") says: the two families in
 * turn, the next one when an attempt has failed or has had no answer for 250 ms, and the first that
 * is connected wins. Who dials calls dialer_turn() whenever `ready_fd` is readable or it is
 * `next_ns`.
 */
#ifndef DIALER_H
#define DIALER_H

#include "socket.h"

#include <stdint.h>

#define DIALER_ATTEMPT_NS INT64_C(250000000)

enum dialer_state {
	DIALER_IDLE,
	DIALER_WAITING,   /* for the name service, or for an answer of the peer */
	DIALER_CONNECTED, /* the socket is given away: dialer_take() */
	DIALER_FAILED,    /* see `reason` */
};

struct dialer_lookup;

struct dialer {
	enum dialer_state state;
	struct socket_buffers buffers;
	struct dialer_lookup *lookup;    /* while and after a name is looked up; else NULL */
	struct addrinfo *addresses;      /* of a number; a lookup has its own */
	const struct addrinfo **in_turn; /* in the order in which they are tried */
	size_t count, tried;
	int *attempts; /* descriptors of those under way, as many as were tried; -1: failed */
	int ready_fd;
	int64_t next_ns; /* monotonic; INT64_MAX: not before ready_fd is readable */
	int error;       /* of the attempt that says most, or 0 */
	int fd;          /* when connected */
	char reason[128];
};

/* Begins with HOST (a name or a number, IPv6 with or without a scope) and PORT, a number. */
void dialer_start(
	struct dialer *d, const struct socket_buffers *buffers, const char *host, const char *port);

/* Goes on as far as is possible without waiting. */
enum dialer_state dialer_turn(struct dialer *d, int64_t now_ns);

/* The socket that is connected: the caller's from now on. D is idle again. */
int dialer_take(struct dialer *d);

/* Gives up whatever is under way. `reason` then says what has been learnt until now; it is empty if
 * that is nothing. */
void dialer_stop(struct dialer *d);

#endif
