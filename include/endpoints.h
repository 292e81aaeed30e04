/* endpoints: the AMQP endpoints of an engine's connections: how connections, sessions and links
 * open, fail and close. Layer 3, for engine.c, connections.c and answer_links.c alone. */
#ifndef ENDPOINTS_H
#define ENDPOINTS_H

#include "engine.h"

/* Opens CONNECTION, which we make, and in it a session and a link. */
void endpoints_open(struct engine *e, pn_connection_t *connection);

/* engine_refuse(). */
void endpoints_refuse(struct engine *e, pn_link_t *link, const char *condition, const char *why);

/* engine_detach(). */
void endpoints_detach(struct engine *e, pn_link_t *link);

/* Ours, or our side of the peer's. */
void endpoints_open_session(struct engine *e, pn_session_t *session);

/* Whether the peer's attach, which has come, is a refusal. */
bool endpoints_is_refused(pn_link_t *link);

/* Closes links that the peer has left and the program is done with. */
void endpoints_finish(struct engine *e);

/* Closes all links and connections. */
void endpoints_close(struct engine *e);

/* One event of a connection, session or link; others are ignored. */
void endpoints_handle(struct engine *e, pn_event_t *event, pn_event_type_t type);

#endif
