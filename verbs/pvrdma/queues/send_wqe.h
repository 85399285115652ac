/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Converts a send request in a slot of the guest's ring to the engine's structure. */
#ifndef URXE_PVRDMA_SEND_WQE_H
#define URXE_PVRDMA_SEND_WQE_H

#include "pvrdma_device.h"

struct pv_send_request {
	struct urxe_send_wr wr; /* segs and path point to the members below */
	struct urxe_seg segs[URXE_MAX_SGE];
	struct urxe_path path;
};

/* The bytes of a slot for a request with so many segments, as the driver computes them. */
uint32_t pv_send_wqe_size(uint32_t max_sge);
/* Copies the request at a slot, and checks the copy. False: it is malformed; only wr.wr_id is
 * valid. */
bool pv_send_wqe_read(const struct pv_qp *qp, const uint8_t *slot, struct pv_send_request *request);

#endif
