/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A port in shared memory, whose other end, the peer, is a process that the port's user need not
 * trust. urxed has such a port for each virtual machine with a vhost-user NIC, where the peer is
 * the process that reads the machine's rings, and for each device process (urxe vm), which is
 * itself the peer.
 *
 * The port's side creates all memory and descriptors, checks each word that the peer writes, and
 * copies each frame before the port's user reads it. No call waits for the peer.
 */
#ifndef URXE_NETDEV_SHM_H
#define URXE_NETDEV_SHM_H

#include <netdev/netdev.h>
#include <stddef.h>

/* Frames that wait in each direction, at most. */
#define NETDEV_SHM_DEPTH 512u
/* Packet buffers of the peer that fit the shared memory, beside those of waiting frames. */
#define NETDEV_SHM_SPARE 576u

/* What a peer needs to attach. */
struct netdev_shm_fds {
	int memory; /* memfd of fixed size: the rings and packet buffers */
	int wake;   /* eventfd: the peer writes when it has a frame for a sleeping port */
	int kick; /* read end of a pipe: the port writes when it has a frame for a sleeping peer */
};

/* --- The port's side */

enum netdev_shm_state {
	NETDEV_SHM_ABSENT,   /* no peer: before netdev_shm_connect, after netdev_shm_disconnect */
	NETDEV_SHM_STARTING, /* the peer has not called netdev_shm_set_ready yet */
	NETDEV_SHM_READY,
	NETDEV_SHM_BROKEN, /* the peer wrote an impossible ring position: nothing moves any more */
};

/*
 * Makes a port without a peer. -EINVAL: the MTU is out of range; -ENOMEM: no memory or descriptor.
 * Frames that are sent to a peer that is not ready are dropped and counted (tx_no_peer).
 * netdev_is_up: the peer is ready and has a link. netdev_wait_fd: an epoll set.
 */
int netdev_shm_create(uint32_t mtu, struct netdev **port);
/*
 * Makes memory and descriptors for a new peer. -EISCONN: the port has one already; or another
 * negative errno value. The port owns the descriptors, until netdev_shm_disconnect: the caller
 * passes duplicates to the peer's process. The second call and each later one count as a restart.
 */
int netdev_shm_connect(struct netdev *port, struct netdev_shm_fds *fds);
/* Call it after the end of the peer's process: unmaps the memory and closes the port's descriptors.
 * Frames in the rings are lost. */
void netdev_shm_disconnect(struct netdev *port);
enum netdev_shm_state netdev_shm_state(struct netdev *port);
/*
 * Returns the number of frames that the peer has taken, modulo 2^32; *waiting becomes the number
 * that wait for it. A peer takes frames at all times, also without a machine. Both are 0 unless the
 * peer is ready.
 */
uint32_t netdev_shm_progress(struct netdev *port, uint32_t *waiting);

/* --- The peer's side, which trusts the port */

struct netdev_shm_peer;

/* Maps the memory. The caller keeps the descriptors open until netdev_shm_detach. -EPROTO: the
 * memory is not that of such a port; or another negative errno value. */
int netdev_shm_attach(const struct netdev_shm_fds *fds, struct netdev_shm_peer **peer);
void netdev_shm_detach(struct netdev_shm_peer *peer);
uint32_t netdev_shm_mtu(const struct netdev_shm_peer *peer);
/* The packet buffers, *size bytes. Frames that are passed to netdev_shm_send must lie in them. */
void *netdev_shm_buffers(const struct netdev_shm_peer *peer, size_t *size);
/* Sets the counters of the peer's device. netdev_counters of the port adds some of them (of_peer of
 * shm_port.c) to its own. */
void netdev_shm_set_counters(struct netdev_shm_peer *peer,
			     const uint64_t counters[NETDEV_COUNTER_COUNT]);
/* Tells the port (netdev_is_up) whether the peer's device can reach the virtual machine. Until the
 * first call it counts as able to. */
void netdev_shm_set_link(struct netdev_shm_peer *peer, bool up);
void netdev_shm_set_ready(struct netdev_shm_peer *peer);

/* How many frames netdev_shm_send accepts now. */
uint32_t netdev_shm_room(const struct netdev_shm_peer *peer);
/* Sends n frames, at most the room, which lie in the memory of netdev_shm_buffers. */
void netdev_shm_send(struct netdev_shm_peer *peer, const struct netdev_frame *frames, uint32_t n);
/*
 * Number of frames of netdev_shm_send, modulo 2^32, whose buffers the port does not read any more.
 */
uint32_t netdev_shm_released(const struct netdev_shm_peer *peer);
/* The next frames from the port, at most n; they stay in the ring until netdev_shm_release. */
uint32_t netdev_shm_receive(struct netdev_shm_peer *peer, struct netdev_frame *frames, uint32_t n);
void netdev_shm_release(struct netdev_shm_peer *peer, uint32_t n);
/*
 * Before a sleep on fds.kick: makes the port write there for its next frame. True: frames are there
 * already.
 */
bool netdev_shm_arm(struct netdev_shm_peer *peer);
/* Reads fds.kick until it is empty. False: the port has disconnected, or its process has ended. */
bool netdev_shm_reset(struct netdev_shm_peer *peer);

#endif
