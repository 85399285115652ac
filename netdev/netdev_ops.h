/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations that each kind of port implements, for netdev.c, which calls them. */
#ifndef URXE_NETDEV_NETDEV_OPS_H
#define URXE_NETDEV_NETDEV_OPS_H

#include <netdev/netdev.h>

/* All but rx, tx and close may be NULL; netdev.c then returns the default of netdev.h. */
struct netdev_ops {
	uint32_t (*rx)(struct netdev *port, uint64_t now, struct netdev_frame *frames, uint32_t n);
	uint32_t (*tx)(struct netdev *port, uint64_t now, const struct netdev_frame *frames,
		       uint32_t n);
	uint64_t (*next_deadline)(struct netdev *port);
	int (*wait_fd)(struct netdev *port);
	bool (*mac)(const struct netdev *port, uint8_t mac[6]);
	uint32_t (*mtu)(const struct netdev *port);
	int (*set_promiscuous)(struct netdev *port, bool on);
	int (*add_mac)(struct netdev *port, const uint8_t mac[6]);
	int (*add_group)(struct netdev *port, const uint8_t mac[6]);
	int (*set_allmulticast)(struct netdev *port);
	int (*add_vlan)(struct netdev *port, uint16_t vlan);
	int (*exclude_qpns)(struct netdev *port, const uint16_t *blocks, uint32_t n);
	int (*admit_qpns)(struct netdev *port, const uint16_t *blocks, uint32_t n);
	bool (*can_exclude_qpns)(struct netdev *port);
	bool (*is_up)(struct netdev *port);
	void (*link_returned)(struct netdev *port);
	uint64_t (*page_size)(const struct netdev *port);
	void (*counters)(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT]);
	void (*close)(struct netdev *port);
};

/* First member of each port. */
struct netdev {
	const struct netdev_ops *ops;
	struct netdev *below; /* the port on which this one sits; NULL: none */
};

/* The frame's length on the wire, bytes: senders may leave wire_len 0, and a frame has no more
 * bytes in memory than on the wire. */
static inline uint32_t frame_wire_len(const struct netdev_frame *frame)
{
	return frame->wire_len > frame->len ? frame->wire_len : frame->len;
}

#endif
