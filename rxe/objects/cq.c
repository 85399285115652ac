/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "objects/device.h"
#include "objects/offload_objects.h"

int urxe_cq_create(struct urxe_dev *dev, void *ctx, struct urxe_cq **out)
{
	struct urxe_cq *cq = calloc(1, sizeof(*cq));

	RECORD_ENTRY(dev, CQ_CREATE, .context = (uintptr_t)ctx);
	if (!cq)
		return -ENOMEM;
	cq->dev = dev;
	cq->ctx = ctx;
	LIST_INSERT_HEAD(&dev->cqs, cq, link);
	*out = cq;
	return 0;
}

int urxe_cq_destroy(struct urxe_cq *cq)
{
	RECORD_ENTRY(cq->dev, CQ_DESTROY, .context = (uintptr_t)cq->ctx);
	if (cq->users)
		return -EBUSY;
	LIST_REMOVE(cq, link);
	offload_destroy_cq(cq);
	free(cq);
	return 0;
}

/* IBA 11.4.2.2: a request for the next completion outweighs one for a solicited one. */
void urxe_cq_arm(struct urxe_cq *cq, bool solicited_only)
{
	RECORD_ENTRY(cq->dev, CQ_ARM, .context = (uintptr_t)cq->ctx, .flag = solicited_only);
	if (!solicited_only)
		cq->armed = CQ_ARMED_NEXT;
	else if (!cq->armed)
		cq->armed = CQ_ARMED_SOLICITED;
	offload_arm_cq(cq, cq->armed == CQ_ARMED_SOLICITED);
}
