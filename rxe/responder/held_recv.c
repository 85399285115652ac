/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/held_recv.h"

#include "memory/sg_list.h"
#include "objects/qp.h"
#include "objects/rq.h"

static struct sge_list held_list(const struct urxe_qp *qp)
{
	return (struct sge_list){
		.segs = qp->resp.wqe->segs,
		.n = qp->resp.wqe->n_segs,
		.pd = qp->rq->attr.pd,
	};
}

bool resp_scatter(struct urxe_qp *qp, uint32_t offset, const uint8_t *src, uint32_t len)
{
	struct sge_list list = held_list(qp);

	return sge_scatter(qp->dev, &list, offset, src, len);
}

uint32_t resp_extents(const struct urxe_qp *qp, uint32_t offset, uint32_t len,
		      struct urxe_extent extents[URXE_REFERENCE_PIECES])
{
	const struct sge_bytes bytes = {offset, len, URXE_ACCESS_LOCAL_WRITE};
	struct sge_list list = held_list(qp);
	uint32_t n = 0;

	if (sge_extents(qp->dev, &list, &bytes, extents, URXE_REFERENCE_PIECES) < len)
		return 0;
	for (; len; n++)
		len -= (uint32_t)extents[n].length;
	return n;
}
