/* listener: a socket on which connections are accepted. Layer 3. */
#ifndef LISTENER_H
#define LISTENER_H

#include "socket.h"

struct listener {
	pn_selectable_t *selectable; /* NULL: not listening */
	struct socket_buffers buffers;
	bool paused;  /* by the owner */
	bool resting; /* because there was no descriptor to be had */
	void (*accepted)(void *context, int fd);
	void *context;
};

/* Listens on HOST and PORT ("0": the kernel chooses); each connection's descriptor is given to
 * `accepted`, which owns it, as are `buffers` and `context`, set by the caller. L must stay where
 * it is. Returns NULL, or a text that says why it cannot. */
const char *listener_open(
	struct listener *l, pn_reactor_t *reactor, const char *host, const char *port);

/* Connections wait in the kernel, or are accepted again. */
void listener_pause(struct listener *l, bool pause);

/* Idempotent. */
void listener_close(struct listener *l);

#endif
