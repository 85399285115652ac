/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The datapath of the device process: moves frames between the two PCI functions and the port of
 * urxed's switch, and between PVRDMA and the inboxes of peers. A frame from the switch goes to
 * PVRDMA if pvrdma_wants it, else to the vmxnet3. "The driver" is that of the vmxnet3.
 */
#ifndef URXE_VM_DATAPATH_H
#define URXE_VM_DATAPATH_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/announcement_limit.h"
#include "vm/device/pvrdma_function.h"
#include "vm/device/vmxnet3_function.h"
#include "vm/host/machine_peers.h"
#include "vm/host/switch_link.h"

struct datapath {
	struct switch_link *link;
	struct vmxnet3_function *nic;
	struct pvrdma_function *rdma;
	struct machine_peers *peers;
	uint8_t *buffers; /* for PVRDMA's frames that are in no buffer of the ring */
	/* PVRDMA's frames for which an inbox, or the ring to urxed, had no room: those from `first`
	 * to `count` - 1. */
	struct urxe_frame kept[SWITCH_LINK_BURST];
	uint32_t first, count;
	uint32_t tx_rounds; /* calls of datapath_run with frames of the driver since a sleep */
	bool polling;       /* this process has told the driver to ring no doorbells */
	/*
	 * When datapath_run has to look at the rings once more after `polling`: the driver may have
	 * added a frame, without a doorbell, before it saw the end of `polling`. 0 = no need.
	 */
	uint64_t look_again_at;
	bool link_full;         /* the ring to urxed, or an inbox, had no room for a frame */
	uint64_t blocked_since; /* since when a frame waits for a receive buffer; 0 = none waits */
	bool rdma_moved; /* the last datapath_run had frames or requests of PVRDMA, or the HCA had
			    completions */
	struct announcement_limit announced; /* the limit of announcements that PVRDMA hears */
};

int datapath_init(struct datapath *f, struct switch_link *link, struct vmxnet3_function *nic,
		  struct pvrdma_function *rdma, struct machine_peers *peers);
void datapath_free(struct datapath *f);

/*
 * Moves a burst of frames each way, also those of PVRDMA, and runs PVRDMA's requests. True: a frame
 * has moved, or PVRDMA had work.
 */
bool datapath_run(struct datapath *f, uint64_t now);
/* When datapath_run has to be called without an event; UINT64_MAX = never. */
uint64_t datapath_deadline(const struct datapath *f, uint64_t now);
/*
 * Before a sleep: asks the driver for doorbells, and urxed and peers for a notice of the next
 * frame. True: call datapath_run again, and do not sleep.
 */
bool datapath_arm(struct datapath *f, uint64_t now);

#endif
