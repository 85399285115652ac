/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets with descriptors on UNIX sockets (SOCK_SEQPACKET): urxed's sockets for urxe show, rdma_cm
 * and device processes, and the connections to its helper processes. Sending never raises SIGPIPE.
 */
#ifndef URXE_COMMON_UNIX_PACKET_H
#define URXE_COMMON_UNIX_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define UNIX_PACKET_FDS     2  /* descriptors in struct unix_packet_extras */
#define UNIX_PACKET_FDS_MAX 64 /* limit of the descriptors of a packet */

/* Sets the address to the path DIR/NAME. Returns 0; -ENAMETOOLONG: the path does not fit. */
int unix_packet_address(struct sockaddr_un *address, const char *dir, const char *name);

/*
 * Replaces the file DIR/NAME by a listening socket that only its owner may connect to. Receive from
 * its connections by vnic/peer_socket.h, because any peer may send descriptors. Returns a
 * non-blocking descriptor or a negative errno value.
 */
int unix_packet_listen(const char *dir, const char *name, int backlog);

/* Sets *peer to the process at the other end, as it was when it connected or called socketpair(2)
 * (unix(7)). Returns 0 or a negative errno value; then the user in *peer is (uid_t)-1. */
int unix_packet_peer(int fd, struct ucred *peer);
/* Is the peer root or this process's own user? */
bool unix_packet_peer_is_trusted(int fd);

/*
 * Sends a packet with n descriptors, at most UNIX_PACKET_FDS_MAX. Returns 0 or a negative errno
 * value.
 */
int unix_packet_send(int fd, const void *message, uint32_t len, const int *fds, uint32_t n);

struct unix_packet_extras {
	int fds[UNIX_PACKET_FDS]; /* received descriptors, which the caller owns; -1 = none */
};

/*
 * Receives a packet of at most `len` bytes; waits for it if the socket blocks. Returns its length,
 * 0 at the end of the connection, -EPROTO for a longer packet, or another negative errno value.
 * Sets *extras in each case; also after -EPROTO it may have descriptors.
 */
int unix_packet_recv(int fd, void *message, uint32_t len, struct unix_packet_extras *extras);
/* As unix_packet_recv, with room for n descriptors, at most UNIX_PACKET_FDS_MAX: sets all n, -1 =
 * none. Closes further descriptors of the packet. */
int unix_packet_recv_fds(int fd, void *message, uint32_t len, int *fds, uint32_t n);
/* Closes the received descriptors. */
void unix_packet_close_fds(const struct unix_packet_extras *extras);

#endif
