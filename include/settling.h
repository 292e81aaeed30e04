/* settling: what becomes of messages that psend has sent. Layer 5, for psend.c.
 *
 * The peer says how a delivery has ended, or settles it without saying so; then it is timed and
 * counted, once, is not kept any more to be sent again, and its place in the queue depth is free. A
 * message that the peer settles in its middle is given up: it counts as sent, and has no latency.
 */
#ifndef SETTLING_H
#define SETTLING_H

#include "outgoing.h"

/* Takes the news of a run of O's deliveries. O is no more when it returns, if the peer has broken
 * the protocol. */
void settling_take(struct sender *s, struct outgoing *o, struct engine_batch *batch);

#endif
