/* endpoints: connections, sessions and links of an engine: how they open, fail and close. Layer 3,
 * for engine.c alone. */
#ifndef ENDPOINTS_H
#define ENDPOINTS_H

#include "engine.h"

/* Start listening, or one attempt to connect; what goes wrong is reported to the program. */
void endpoints_listen(struct engine *e);
void endpoints_connect(struct engine *e);

/* Closes links that the peer has left and the program is done with. */
void endpoints_finish(struct engine *e);

/* Closes all links and connections, and stops listening. */
void endpoints_close(struct engine *e);

/* Writes "connection to HOST:PORT", or "listening on" it. */
void endpoints_name_peer(const struct engine *e, char *text, size_t size);

/* One event of a connection, session or link; others are ignored. */
void endpoints_handle(struct engine *e, pn_event_t *event, pn_event_type_t type);

#endif
