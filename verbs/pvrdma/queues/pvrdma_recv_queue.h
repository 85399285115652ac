/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Passes receive requests of a QP or an SRQ from the guest's ring to the engine. */
#ifndef URXE_PVRDMA_PVRDMA_RECV_QUEUE_H
#define URXE_PVRDMA_PVRDMA_RECV_QUEUE_H

#include "pvrdma_device.h"

/* The bytes of a slot for a request with so many segments, as the driver computes them. */
uint32_t pv_recv_wqe_size(uint32_t max_sge);
/* Posts requests that the guest has added, as far as the engine has room. True: posted some. */
bool pv_recv_queue_refill(struct pvrdma *dev, struct pv_recv_queue *queue);
/* urxe_ops.refill: the engine's receive queue runs low: posts the requests that the guest has
 * added. `ctx`: a struct pv_qp or pv_srq. */
void pv_recv_queue_on_refill(void *ctx);

#endif
