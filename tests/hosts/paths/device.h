/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device, memory and completion queue that all connections of a member share. Each function
 * exits on failure. */
#ifndef URXE_TEST_DEVICE_H
#define URXE_TEST_DEVICE_H

#include <stdint.h>

#include <infiniband/verbs.h>

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* non-blocking */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	union ibv_gid gid;
	uint8_t gid_index;
	enum ibv_mtu mtu;
};

/* Opens urxe0, registers `size` bytes, and makes a completion queue for `depth` work requests. */
void device_open(struct device *dev, uint8_t gid_index, uint64_t size, int depth);
void device_close(struct device *dev);
/* Reads the channel's event, if any, and arms the CQ. The caller polls the CQ afterwards. */
void device_rearm(struct device *dev);

#endif
