/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues. */
#ifndef URXE_PVRDMA_PVRDMA_SRQ_H
#define URXE_PVRDMA_PVRDMA_SRQ_H

#include "memory/page_list.h"
#include "pvrdma_device.h"

int pv_srq_open(struct pvrdma *dev, struct pv_pd *pd, const struct pv_cmd_create_srq *request,
		struct pv_srq **srq);
/* The caller has checked that no QP uses the SRQ. */
void pv_srq_close(struct pv_srq *srq);
/* If the SRQ uses these bytes of guest memory, it takes no further requests, and forgets them. */
void pv_srq_memory_removed(struct pv_srq *srq, const struct pv_removed *removed);

#endif
