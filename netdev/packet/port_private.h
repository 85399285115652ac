/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process's part of a packet port: what its files share. */
#ifndef URXE_NETDEV_PACKET_PORT_PRIVATE_H
#define URXE_NETDEV_PACKET_PORT_PRIVATE_H

#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdint.h>

#include <netdev/gso_packet.h>
#include <netdev/packet_port.h>

#include "packet/packet_ring.h"

/* Frames of one system call: as many as a GSO packet may have. */
#define TX_BURST GSO_SEGMENTS

/*
 * The messages of one system call: each is one frame, or a GSO packet of several. Not on the stack:
 * a program's thread that posts may have a small one.
 */
struct packet_tx_burst {
	struct mmsghdr messages[TX_BURST];
	uint32_t frames[TX_BURST]; /* number of frames in each message */
	struct virtio_net_hdr vnets[TX_BURST];
	uint8_t headers[TX_BURST][GSO_HEADERS];
	struct iovec parts[3 * TX_BURST]; /* of all messages */
	uint32_t n, n_parts;
};

/* A VLAN tag that the kernel has taken out of a packet. */
struct packet_tag {
	bool present;
	uint8_t bytes[PACKET_RING_VLAN];
};

struct packet_port {
	int fd;
	int interrupt; /* epoll set of fd */
	struct packet_port_ring ring;
	uint32_t per_block, frames;
	uint8_t *memory;
	uint32_t head;              /* place of the next frame */
	uint32_t tail;              /* place of the oldest frame that was not released */
	uint32_t dropped;           /* drops that packet_port_read_drops has not returned yet */
	bool moved;                 /* the caller got frames since the last
				       packet_port_ring_state */
	bool suspect;               /* the kernel's last drops may have stopped the ring */
	uint32_t suspect_place;     /* if suspect: the place that the kernel was to fill next at
				       its last drops */
	bool vnet;                  /* packets have a virtio-net header in front */
	bool gso;                   /* the kernel sends and receives UDP GSO packets here */
	struct gso_packet received; /* UDP GSO packet whose segments packet_port_rx returns now */
	struct packet_tag received_tag; /* of that packet */
	struct packet_tx_burst burst;   /* the messages of the next system call */
};

/* Whether the next place of the ring has a frame. */
bool packet_port_has_frame(const struct packet_port *port);

#endif
