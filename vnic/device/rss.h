/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive side scaling: selects a receive queue by the Toeplitz hash of a frame's headers. */
#ifndef URXE_VNIC_DEVICE_RSS_H
#define URXE_VNIC_DEVICE_RSS_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/regs.h>

/* The longest input: two IPv6 addresses and two ports. */
#define VNIC_RSS_INPUT 36
/*
 * Bytes of a frame that the hash may read: Ethernet with two tags, IPv6 with some extension headers
 * or IPv4 with all options, and the ports.
 */
#define VNIC_RSS_HEAD 192

struct vnic_rss {
	uint16_t types;      /* UPT1_RSS_HASH_TYPE_* */
	uint16_t table_size; /* never 0 once a configuration is set */
	uint8_t table[UPT1_RSS_TABLE_SIZE];
	/* The hash of each value of each half byte of the input, where all other bits are 0. */
	uint32_t partial[2 * VNIC_RSS_INPUT][16];
};

struct vnic_rss_hash {
	uint32_t hash;
	enum vmxnet3_rss_type type; /* NONE: the driver wants no hash of such a packet */
};

/* Copies a configuration, which must not change meanwhile. False: it is invalid. */
bool vnic_rss_set(struct vnic_rss *rss, const struct upt1_rss_conf *conf, uint32_t queues);
/*
 * Hashes a frame, of which the first `len` bytes are in private memory. `fields`:
 * VMXNET3_RSS_FIELDS_*. The type NONE: the driver wants no hash of such a frame, or the frame is no
 * IP packet.
 */
struct vnic_rss_hash vnic_rss_hash(const struct vnic_rss *rss, uint32_t fields,
				   const uint8_t *frame, uint32_t len);

static inline uint32_t vnic_rss_queue(const struct vnic_rss *rss, uint32_t hash)
{
	return rss->table[hash % rss->table_size];
}

#endif
