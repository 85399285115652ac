/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues: completions from the engine to the guest's ring, and notifications. */
#ifndef URXE_PVRDMA_PVRDMA_CQ_H
#define URXE_PVRDMA_PVRDMA_CQ_H

#include "memory/memory_change.h"
#include "pvrdma_device.h"

/* Creates a CQ for the command CREATE_CQ. `uc`: the context that owns the CQ; NULL: the guest's
 * kernel. Errors are those of the command. */
int pv_cq_open(struct pvrdma *dev, struct pv_object *uc, const struct pv_cmd_create_cq *request,
	       struct pv_cq **cq);
/* Destroys the CQ, which no QP uses. */
void pv_cq_close(struct pv_cq *cq);
/* If the CQ's ring uses these bytes of guest memory, the CQ fails, and never accesses the ring
 * again. */
void pv_cq_memory_removed(struct pv_cq *cq, const struct pv_removed *removed);

/* urxe_ops.complete and urxe_ops.comp_event; ctx is the struct pv_cq. pv_cq_comp_event does nothing
 * if a notification became due since the engine's CQ was armed. */
bool pv_cq_complete(void *ctx, const struct urxe_wc *wc);
void pv_cq_comp_event(void *ctx);
/* Makes a notification due, unless one is due already or the driver only polls the CQ. */
void pv_cq_notify_later(struct pv_cq *cq);

/*
 * The driver requests a notification of the next completion, or of the next solicited one. If the
 * ring has such a completion already, which the driver has not read and which came after the last
 * notification, the device notifies at once: it may have added that completion after the driver's
 * last look at the ring, while the doorbell was on its way through the hypervisor. If an HCA has
 * the CQ, too, any completion counts as solicited: those of an HCA do not show whether they are.
 */
void pv_cq_arm(struct pv_cq *cq, bool solicited_only);
/* Arms all CQs, some of which the driver may have armed while the device took no doorbells. */
void pv_cq_arm_all(struct pvrdma *dev);
/* Whether the driver has consumed all completions; false if the ring is unusable, or the device may
 * not access it. */
bool pv_cq_is_empty(struct pv_cq *cq);
/*
 * Whether the driver leaves completions unread of which it needs a notification: the last call
 * found unread ones, the driver has read none since, and the newest came after the last
 * notification.
 */
bool pv_cq_is_left_unread(struct pv_cq *cq);
/* Tells the driver that the CQ has failed, by an asynchronous event; only the first time. */
void pv_cq_report_failure(struct pv_cq *cq);
/* Writes the due notifications to the ring of notifications; those without room stay due. If the
 * ring's memory is gone, drops them. */
void pv_cq_notify_due(struct pvrdma *dev);

#endif
