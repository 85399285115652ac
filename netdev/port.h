/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a kind of port implements: the table behind netdev_rx and its siblings. */
#ifndef URXE_NETDEV_PORT_H
#define URXE_NETDEV_PORT_H

#include <netdev/netdev.h>

/* Operations left NULL get the answer of a port that has nothing of the sort. */
struct netdev_ops {
	uint32_t (*rx)(struct netdev *port, uint64_t now, struct netdev_frame *frames, uint32_t n);
	uint32_t (*tx)(struct netdev *port, uint64_t now, const struct netdev_frame *frames,
		       uint32_t n);
	uint64_t (*next_deadline)(struct netdev *port);
	int (*wait_fd)(struct netdev *port);
	bool (*mac)(const struct netdev *port, uint8_t mac[6]);
	uint32_t (*mtu)(const struct netdev *port);
	int (*hear_all)(struct netdev *port);
	int (*hear_vlan)(struct netdev *port, uint16_t vlan);
	uint64_t (*page_size)(const struct netdev *port);
	void (*counters)(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT]);
	void (*close)(struct netdev *port);
};

/* First member of each port. */
struct netdev {
	const struct netdev_ops *ops;
};

/* A sender need not fill in wire_len; no frame is longer in memory than on the wire. */
static inline uint32_t frame_wire_len(const struct netdev_frame *frame)
{
	return frame->wire_len > frame->len ? frame->wire_len : frame->len;
}

#endif
