/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues: creation, destruction, and receive requests from the guest's ring. */
#ifndef URXE_PVRDMA_PVRDMA_SRQ_H
#define URXE_PVRDMA_PVRDMA_SRQ_H

#include "memory/memory_change.h"
#include "pvrdma_device.h"

/* Creates an SRQ for the command CREATE_SRQ. Errors are those of the command. */
int pv_srq_open(struct pvrdma *dev, struct pv_pd *pd, const struct pv_cmd_create_srq *request,
		struct pv_srq **srq);
/* Destroys the SRQ. The caller has checked that no QP uses it. */
void pv_srq_close(struct pv_srq *srq);
/*
 * Refills the SRQ without a doorbell of its own, if a QP uses it: if Linux' driver gave up
 * CREATE_SRQ before the response, it has freed the SRQ's ring, and no QP uses that SRQ.
 */
void pv_srq_refill_used(struct pv_srq *srq);
/* If the SRQ's ring uses these bytes of guest memory, the SRQ takes no further requests, and never
 * accesses the ring again. */
void pv_srq_memory_removed(struct pv_srq *srq, const struct pv_removed *removed);

#endif
