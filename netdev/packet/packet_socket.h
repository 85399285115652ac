/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packet sockets on an interface that carries the host's own traffic, too. */
#ifndef URXE_NETDEV_PACKET_PACKET_SOCKET_H
#define URXE_NETDEV_PACKET_PACKET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * A nonblocking descriptor, or a negative errno value. The socket receives nothing before
 * packet_socket_bind, and never the frames that the interface sends.
 */
int packet_socket_create(void);
/* Sets an option of level SOL_PACKET. 0, or a negative errno value. */
int packet_socket_set(int fd, int option, int value);
/* From now on the socket receives the interface's frames. 0, or a negative errno value. */
int packet_socket_bind(int fd, unsigned int ifindex);
/*
 * Sets the limit of the socket's queue, or as near as the kernel allows; the kernel doubles the
 * number for its own structures. Only CAP_NET_ADMIN of the initial user namespace allows more than
 * net.core.rmem_max: root of a container may lack it. 0, or a negative errno value.
 */
int packet_socket_widen_queue(int fd, int bytes);

/* Makes the interface receive all multicast while the socket is open. 0, or a negative errno value.
 */
int packet_socket_add_allmulti(int fd, unsigned int ifindex);

/* Makes the interface receive all frames, at most until the socket is closed, or undoes that. 0, or
 * a negative errno value. */
int packet_socket_set_promiscuous(int fd, unsigned int ifindex, bool on);

/* Makes the interface receive frames to that unicast MAC, too, while the socket is open. 0, or a
 * negative errno value. */
int packet_socket_add_mac(int fd, unsigned int ifindex, const uint8_t mac[6]);

/* The number of frames that the kernel has dropped since the last call, because the ring was full.
 */
uint32_t packet_socket_read_drops(int fd);

/*
 * Whether the kernel has taken a VLAN tag out of a received frame; then *tci gets its TCI in host
 * byte order. The socket has PACKET_AUXDATA.
 */
bool packet_socket_find_tag(struct msghdr *message, uint16_t *tci);

/* Clears a pending error, which makes poll(2) return at once. */
void packet_socket_clear_error(int fd);

/*
 * Makes the kernel send the frames in the socket's transmit ring; *bytes: how many it sent. 0: the
 * ring is empty; -EAGAIN: the socket's send buffer or the queueing discipline is full; or another
 * negative errno value.
 */
int packet_socket_send_ring(int fd, uint64_t *bytes);

#endif
