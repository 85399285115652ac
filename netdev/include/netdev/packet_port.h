/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet socket (packet(7)) by which one process sends and receives the RoCE frames of its own
 * queue pairs on an interface of the kernel: the direct uplink of docs/uplinks.md.
 *
 * urxed creates the socket, which needs CAP_NET_RAW, and passes the descriptor to the process. Only
 * the descriptor travels: the process makes and maps the receive ring, and chooses by a socket
 * filter (classic BPF) for which queue pairs the ring receives. The descriptor carries the kernel's
 * rights of a packet socket: a process with it can send any frame, and receive all frames of the
 * interface.
 *
 * Functions that return int give 0 or a negative errno value, unless their comment says otherwise.
 * One thread at a time may use a port.
 */
#ifndef URXE_NETDEV_PACKET_PORT_H
#define URXE_NETDEV_PACKET_PORT_H

#include <stdbool.h>
#include <stdint.h>

/* Queue pair numbers (24 bits) belong to blocks of 2^12, named by their upper 12 bits. */
#define PACKET_PORT_QPN_SHIFT 12
/* Blocks of a filter: with two instructions each, they fit the kernel's BPF_MAXINSNS. */
#define PACKET_PORT_QPN_BLOCKS_MAX 1024

/* The receive ring, as the process makes it. */
struct packet_port_ring {
	uint32_t frame_size; /* bytes of a place for one frame with the kernel's headers */
	uint32_t blocks; /* of PACKET_PORT_RING_BLOCK_SIZE bytes, each with as many places as fit */
};
#define PACKET_PORT_RING_BLOCK_SIZE 65536u

/* --- urxed */

/*
 * Creates a socket on an interface. *ring gets the sizes of a ring for frames whose Ethernet
 * payload has up to `mtu` bytes. The process makes the ring, because the kernel takes 10 to 100 ms
 * for it, in which urxed would serve no other process. The socket receives nothing before
 * packet_port_accept. While the socket is open, the interface also receives frames to the unicast
 * MAC `mac`; NULL: to its own only. Returns the descriptor, non-blocking and close-on-exec. -EPERM:
 * without CAP_NET_RAW.
 */
int packet_port_create(unsigned int ifindex, uint32_t mtu, const uint8_t *mac,
		       struct packet_port_ring *ring);
/*
 * The same for a port that sends and receives no UDP GSO packets (packet_port_gso): a packet that
 * is longer than a place of the ring is cut off. No packet can stop such a ring.
 */
int packet_port_create_without_gso(unsigned int ifindex, uint32_t mtu,
				   struct packet_port_ring *ring);
/*
 * Whether the kernel passes UDP GSO packets through packet sockets, as Linux 6.2 and later do. An
 * earlier kernel drops such a packet for a socket with virtio-net headers, whose ring then stops.
 */
bool packet_port_kernel_has_gso(void);
/*
 * Whether net.core.rmem_max limits the new socket's queue for UDP GSO packets, because urxed lacks
 * CAP_NET_ADMIN of the initial user namespace.
 */
bool packet_port_queue_is_short(int fd);

/* --- urxed and the process */

/*
 * From now on the ring receives unicast RoCEv1 and RoCEv2 packets to queue pairs of these blocks
 * only, n = 0: nothing. Frames already in the ring stay. -E2BIG: more than
 * PACKET_PORT_QPN_BLOCKS_MAX.
 */
int packet_port_accept(int fd, const uint16_t *blocks, uint32_t n);

/* --- The process */

/*
 * From now on a port or group calls `place` for each descriptor that the port or group opens, and
 * uses the result: `fd`, or a duplicate that replaces `fd`. `place` returns a negative `fd`
 * unchanged and keeps errno. Call packet_port_place_fds once, before any thread opens a port: no
 * lock protects `place`.
 */
void packet_port_place_fds(int (*place)(int fd));

struct packet_port;

struct packet_port_frame {
	uint8_t *data; /* from the Ethernet header on; 802.1Q tags are in the frame */
	uint32_t len;  /* bytes, without FCS */
	/* For packet_port_tx: the frame has the headers of the one before it, but for lengths,
	 * checksums, and an IPv4 identification that is greater by 1, so both may leave as one UDP
	 * GSO packet. */
	bool continues;
};

/* Makes and maps the ring. The port owns fd from now on, also on failure. -EPROTO: an impossible
 * ring. */
int packet_port_open(int fd, const struct packet_port_ring *ring, struct packet_port **port);
/* Unmaps the ring and closes the socket. NULL is ignored. */
void packet_port_close(struct packet_port *port);
/*
 * In a forked child: replaces the ring, which the parent uses, by private zeroed memory, in which
 * no frame arrives, and closes the descriptors: the port loses all frames to send.
 * Async-signal-safe. NULL is ignored.
 */
void packet_port_isolate(struct packet_port *port);

/* The socket, for packet_port_accept. */
int packet_port_fd(const struct packet_port *port);
/*
 * Whether the port sends and receives UDP GSO packets. If it does, packet_port_tx sends frames with
 * `continues` as one packet, and packet_port_rx returns each segment as a frame. UDP GSO packets
 * arrive from virtual interfaces of this host, such as veth, and from GRO. A UDP GSO packet for
 * another host is segmented by the kernel or by the NIC.
 */
bool packet_port_gso(const struct packet_port *port);

/*
 * The interrupt: a descriptor for poll(2), readable after frames came to the unmasked port. An
 * interrupt masks itself. A new port is masked.
 */
int packet_port_irq_fd(const struct packet_port *port);
/* Reads the interrupt, and the socket's error if the interface is down; never blocks. */
void packet_port_irq_read(struct packet_port *port);
void packet_port_irq_mask(struct packet_port *port);
/* Lets frames raise the interrupt again. True: frames are already there, and may raise none. */
bool packet_port_irq_unmask(struct packet_port *port);

/*
 * Returns up to n received frames, in order. They stay valid until packet_port_release, which must
 * come before the next call. One system call for a UDP GSO packet, else none.
 */
uint32_t packet_port_rx(struct packet_port *port, struct packet_port_frame *frames, uint32_t n);
/* Gives the places of all frames that packet_port_rx has returned back to the ring. */
void packet_port_release(struct packet_port *port);

/*
 * Sends up to n frames in order. Returns the number of frames that the caller need not keep: those
 * sent, and those that the kernel refuses (the interface is down, its MTU is less than the frame,
 * its queueing discipline drops the frame). Sets *lost to the number of refused ones. Fewer than n:
 * the socket's send buffer is full, so the caller tries again later.
 */
uint32_t packet_port_tx(struct packet_port *port, const struct packet_port_frame *frames,
			uint32_t n, uint32_t *lost);

/*
 * Returns the number of drops since the last call: frames that the kernel dropped because the ring
 * was full, and UDP GSO packets that the port dropped because they are not RoCEv2.
 */
uint32_t packet_port_read_drops(struct packet_port *port);
/* The higher the value, the more certain is it that the ring has stopped. */
enum packet_ring_state {
	PACKET_RING_RUNS,
	PACKET_RING_SUSPECT, /* it has stopped, or was full just before a silence */
	PACKET_RING_STOPPED,
};

/*
 * Whether the ring has stopped for good, so that the port has to be replaced: Linux stops a port
 * with UDP GSO at a packet that a virtio-net header cannot describe, and a virtual machine whose
 * tap is on the same bridge can send one (UFO). Other ports always run. Suspect: the kernel has
 * dropped packets, the ring is empty, and the caller got no frame since then nor since the last
 * call. Stopped: the kernel has also dropped packets since the last call. So a stop may need two
 * calls to be found. One system call.
 */
enum packet_ring_state packet_port_ring_state(struct packet_port *port);

/*
 * --- The packet ports of one process on several interfaces, the members of a bond. The functions
 * are those of one port, for all of them, unless a comment says otherwise.
 */

struct packet_group;

#define PACKET_GROUP_MAX 8

/* Opens a group. n: 1 to PACKET_GROUP_MAX sockets, one for each member. The group owns them, also
 * on failure. */
int packet_group_open(const int *fds, uint32_t n, const struct packet_port_ring *ring,
		      struct packet_group **group);
void packet_group_close(struct packet_group *group);
void packet_group_isolate(struct packet_group *group);
/* The number of members. */
uint32_t packet_group_size(const struct packet_group *group);
int packet_group_accept(const struct packet_group *group, const uint16_t *blocks, uint32_t n);
/* Whether all members send and receive UDP GSO packets. */
bool packet_group_gso(const struct packet_group *group);
int packet_group_irq_fd(const struct packet_group *group);
void packet_group_irq_read(struct packet_group *group);
void packet_group_irq_mask(struct packet_group *group);
bool packet_group_irq_unmask(struct packet_group *group);
/* Each call returns frames of one member; members take turns. */
uint32_t packet_group_rx(struct packet_group *group, struct packet_port_frame *frames, uint32_t n);
/* The member that received the frames of the last packet_group_rx. */
uint32_t packet_group_rx_member(const struct packet_group *group);
void packet_group_release(struct packet_group *group);
/* As packet_port_tx, by the port of this member. */
uint32_t packet_group_tx(struct packet_group *group, uint32_t member,
			 const struct packet_port_frame *frames, uint32_t n, uint32_t *lost);
uint32_t packet_group_read_drops(struct packet_group *group);
/* The highest packet_port_ring_state of all members. */
enum packet_ring_state packet_group_ring_state(struct packet_group *group);

/* --- Flows: urxed's switch and processes choose the same member for a connection */

/*
 * The flow of a RoCE packet, from its destination QPN and the last 4 bytes of both addresses in
 * host byte order. The QPNs of connections between two addresses often differ by 1. The factor of
 * the addresses is a multiple of each possible number of members, so such connections take turns at
 * the members.
 */
static inline uint32_t packet_group_flow(uint32_t qpn, uint32_t source, uint32_t destination)
{
	return qpn + 840 * (source + destination);
}
/*
 * The member of n that carries a flow. `carriers` has a bit for each member that carries frames
 * now, and 0 stands for all members. A flow leaves its member only while that member carries none.
 *
 * Flows with consecutive numbers take turns at the members. Multiples of the golden ratio spread
 * numbers in other arithmetic progressions, such as the first QPNs of several processes.
 */
uint32_t packet_group_choose(uint32_t flow, uint32_t n, uint32_t carriers);

#endif
