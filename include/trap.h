/* trap: an assertion of the library's that fails ends what it was doing, not the process. Layer 3.
 *
 * Distributions build libqpid-proton with its assertions, and a peer can make one fail: by a
 * message in several frames of which the first has no delivery-id. That is the peer's failure, and
 * a program that listens has others.
 *
 * What the library was doing is left half done, and a little memory may be lost by it. The
 * transport gets a condition, as for other errors of the peer's, and can only be closed.
 */
#ifndef TRAP_H
#define TRAP_H

#include <proton/transport.h>
#include <stddef.h>

/* pn_transport_process() and pn_transport_close_tail(). */
void trap_process(pn_transport_t *transport, size_t count);
void trap_close_tail(pn_transport_t *transport);

#endif
