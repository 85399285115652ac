/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way of frames between the functions of the device and the station on urxed's switch. A
 * received frame goes to PVRDMA if that wants it, else to vmxnet3.
 */
#ifndef URXE_VM_FRAMES_H
#define URXE_VM_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "vm/pvrdma_function.h"
#include "vm/station_link.h"
#include "vm/vmxnet3_function.h"

struct frames {
	struct station_link *link;
	struct vmxnet3_function *nic;
	struct pvrdma_function *rdma;
	uint8_t *buffers;       /* for a burst of PVRDMA's frames */
	uint32_t tx_rounds;     /* with frames of the driver, one after the other */
	bool polling;           /* the driver rings no doorbells */
	uint64_t look_again_at; /* after polling, because of the driver's store buffer; 0 = no need
				 */
	bool link_full;         /* frames wait for room in the ring to urxed */
	uint64_t blocked_since; /* when the driver's receive rings became full; 0 = they are not */
	uint64_t dropped;       /* received frames that the driver had no buffer for */
};

int frames_init(struct frames *f, struct station_link *link, struct vmxnet3_function *nic,
		struct pvrdma_function *rdma);
void frames_free(struct frames *f);

/* Moves a burst of frames each way. True: something has moved. */
bool frames_run(struct frames *f, uint64_t now);
/* When frames_run has to be called without an event; UINT64_MAX = never. */
uint64_t frames_deadline(const struct frames *f, uint64_t now);
/* Before a sleep. True: call frames_run instead. */
bool frames_arm(struct frames *f, uint64_t now);

#endif
