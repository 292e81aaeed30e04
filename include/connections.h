/* connections: how an engine's connections are made, counted, lost and made again, and what is said
 * when they fail. Layer 3, for engine.c and endpoints.c alone.
 *
 * A program that listens has any number of them. One that connects has one at a time: it is being
 * made (`dialing`) from the start, and again after a loss if that is wanted, until its link is
 * attached.
 */
#ifndef CONNECTIONS_H
#define CONNECTIONS_H

#include "engine.h"

/* Starts to listen, or the first attempt to connect; what goes wrong is told to the program. */
void connections_start(struct engine *e);

/* Serves FD, which is connected, as a connection that was accepted. */
void connections_accept(struct engine *e, int fd);

/* Goes on with dialing, and ends connections that were accepted and have got nowhere, as far as
 * that is due. */
void connections_turn(struct engine *e, int64_t now_ns);

/* No more are made or accepted. */
void connections_stop(struct engine *e);

/* NULL if it is none of ours, or gone. */
struct engine_connection *connections_find(struct engine *e, const pn_connection_t *connection);

/* A link of C is attached. */
void connections_attached(struct engine *e, struct engine_connection *c);

/* Tells the program, once a connection, that WHAT ("", "link of ", ...) has failed. If AGAIN, and
 * the options say so, another connection is made instead. */
void connections_fail(struct engine *e, pn_connection_t *connection, const char *what,
	pn_condition_t *condition, bool again);

/* The socket of C is gone. */
void connections_drop(struct engine *e, struct engine_connection *c);

/* The only connection of a program that has made it is of no use any more. */
void connections_lose(struct engine *e);

#endif
