/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's UNIX sockets (SOCK_SEQPACKET) to programs that it does not trust. A message may
 * carry descriptors (SCM_RIGHTS), and closing the last copy of a descriptor can block for as long
 * as its sender wants: a TCP socket with SO_LINGER, a file of a FUSE server that does not answer.
 * The kernel closes the copies in the process that receives the message without room for them, or
 * that closes the socket whose queue has the message. So the daemon does neither.
 */
#ifndef URXE_VNIC_PEER_SOCKET_H
#define URXE_VNIC_PEER_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

/*
 * Removes a file at the address, and listens there. Only processes of the caller's user and of root
 * can connect. Calls vnic_peer_refuse_fds. Returns the socket, which is non-blocking, or a negative
 * errno value.
 */
int vnic_peer_listen(const struct sockaddr_un *address, int backlog);

/*
 * For a listening socket, before listen(2): senders of messages with descriptors get EPERM, from
 * Linux 6.16 on. Accepted sockets inherit that. Older kernels: the functions below look at each
 * message before they receive it.
 */
void vnic_peer_refuse_fds(int listen_fd);

/*
 * Receives a message from an accepted socket, without waiting. Returns its length; 0: the end of
 * the connection; -EPERM: the message carries descriptors, and stays in the queue; -EPROTO: longer
 * than `len`; or another negative errno value.
 */
int vnic_peer_recv(int fd, void *message, uint32_t len);

/*
 * Ends a connection in both directions, and drops the messages in its queue. True: the socket may
 * be closed now. False: a message may carry descriptors, so another process has to close the
 * socket.
 */
bool vnic_peer_shut(int fd);

#endif
