/* endpoints: the AMQP endpoints of an engine's connections: how connections, sessions and links
 * open, fail and close. Layer 3, for engine.c and connections.c alone. */
#ifndef ENDPOINTS_H
#define ENDPOINTS_H

#include "engine.h"

/* Opens CONNECTION, which we make, and in it a session and a link. */
void endpoints_open(struct engine *e, pn_connection_t *connection);

/* Closes links that the peer has left and the program is done with. */
void endpoints_finish(struct engine *e);

/* Closes all links and connections. */
void endpoints_close(struct engine *e);

/* One event of a connection, session or link; others are ignored. */
void endpoints_handle(struct engine *e, pn_event_t *event, pn_event_type_t type);

#endif
