/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/flush_atomic_write.h"

#include <string.h>

#include "memory/mr.h"
#include "objects/qp.h"
#include "responder/acknowledge.h"
#include "responder/resp_resources.h"
#include "wire/aeth.h"

/* Keeps the executed request as a resource, and makes its response due. */
static void keep_response(struct urxe_qp *qp, struct resp_resource *res,
			  enum resp_resource_kind kind)
{
	*res = (struct resp_resource){.kind = (uint8_t)kind};
	resource_keep(qp, res, 1);
	resource_set_pending(qp, res);
}

/* Stores the 8 bytes of the payload atomically, in wire order. */
uint8_t place_atomic_write(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct mr_range range = {
		.qpn = qp->qpn,
		.pd = qp->pd,
		.key = p->reth.rkey,
		.addr = p->reth.va,
		.length = sizeof(uint64_t),
		.access = URXE_ACCESS_REMOTE_WRITE,
	};
	struct resp_resource *res = resource_new(qp);
	struct mr_atomic op = {.kind = MR_STORE};

	if (!res || p->reth.va % sizeof(op.operand) || p->reth.length != sizeof(op.operand) ||
	    p->payload_len != sizeof(op.operand))
		return RESP_ACCESS_VIOLATION;
	memcpy(&op.operand, p->payload, sizeof(op.operand));
	if (!mr_atomic(qp->dev, &range, &op))
		return AETH_NAK_REMOTE_ACCESS;
	keep_response(qp, res, RES_ATOMIC_WRITE);
	return 0;
}

uint32_t place_flush_access(const struct urxe_packet *p)
{
	return (p->feth.placement & URXE_FLUSH_GLOBAL ? URXE_ACCESS_FLUSH_GLOBAL : 0) |
	       (p->feth.placement & URXE_FLUSH_PERSISTENT ? URXE_ACCESS_FLUSH_PERSISTENT : 0);
}

/* Whether the FETH has no reserved value, and at least one placement. */
static bool is_valid_flush(const struct urxe_packet *p)
{
	const uint8_t all = URXE_FLUSH_GLOBAL | URXE_FLUSH_PERSISTENT;

	return p->feth.placement && !(p->feth.placement & ~all) &&
	       p->feth.selectivity <= URXE_FLUSH_KEY && p->reth.length <= URXE_MAX_MSG;
}

/* Earlier writes are in memory already, because the responder executes requests in order. */
uint8_t place_flush(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct mr_range range = {
		.qpn = qp->qpn,
		.pd = qp->pd,
		.key = p->reth.rkey,
		.addr = p->reth.va,
		.length = p->reth.length,
		.access = place_flush_access(p),
	};
	struct resp_resource *res = resource_new(qp);

	if (!res)
		return RESP_ACCESS_VIOLATION;
	if (!is_valid_flush(p))
		return AETH_NAK_INVALID_REQUEST;
	if (p->feth.selectivity == URXE_FLUSH_KEY && !mr_whole(qp->dev, &range))
		return AETH_NAK_REMOTE_ACCESS;
	if (!mr_check(qp->dev, &range))
		return AETH_NAK_REMOTE_ACCESS;
	if (!mr_flush(qp->dev, &range))
		return AETH_NAK_REMOTE_OP;
	keep_response(qp, res, RES_FLUSH);
	return 0;
}
