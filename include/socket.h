/* socket: TCP sockets, and transports that are served on them. Layer 3.
 *
 * A descriptor here never blocks, is not inherited by children, does not delay small writes, and
 * raises no signal when its peer is gone.
 */
#ifndef SOCKET_H
#define SOCKET_H

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <proton/reactor.h>
#include <stdbool.h>
#include <stddef.h>

/* Of the kernel, in bytes; 0: as it likes. */
struct socket_buffers {
	int send_bytes, receive_bytes;
};

/* A new one of FAMILY; -1 and errno if there is none to be had. */
int socket_open(int family, const struct socket_buffers *buffers);

/* Makes one that was opened or accepted elsewhere like those that are opened here. */
void socket_adopt(int fd, const struct socket_buffers *buffers);

/* "127.0.0.1:5672", "[::1]:5672", "[fe80::1%eth0]:5672": never a name, which may take long to find.
 * Empty if FD has no such peer. */
#define SOCKET_NAME_SIZE (INET6_ADDRSTRLEN + IF_NAMESIZE + 12)
void socket_name_peer(int fd, char name[SOCKET_NAME_SIZE]);

/* Our own end of FD as two texts; false if it has none. */
bool socket_local_address(int fd, char host[NI_MAXHOST], char port[8]);

/* Reads and writes for TRANSPORT on FD from now on, and closes FD when that has ended. */
void socket_serve(pn_reactor_t *reactor, int fd, pn_transport_t *transport);

/* What TRANSPORT wants may have changed (PN_TRANSPORT). */
void socket_update(pn_transport_t *transport);

/* Ends it, whatever the peer would like to say. */
void socket_abort(pn_transport_t *transport);

#endif
