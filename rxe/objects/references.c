/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/references.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "objects/device.h"
#include "objects/qp.h"

void add_reference(struct urxe_qp *qp)
{
	if (qp->req.referenced)
		return;
	qp->req.referenced = true;
	LIST_INSERT_HEAD(&qp->dev->referencing, qp, reference_link);
}

static void forget_references(struct urxe_qp *qp)
{
	qp->req.referenced = false;
	LIST_REMOVE(qp, reference_link);
}

/* Ends the references of all QPs: peers refuse every reference of an earlier generation. */
static void begin_generation(struct urxe_dev *dev)
{
	struct urxe_qp *qp;

	__atomic_fetch_add(&dev->attr.copy_table->references, 1, __ATOMIC_SEQ_CST);
	/* Orders the new generation before the program's next writes to the memory: a peer that has
	 * read a byte of these writes then reads the new generation, and refuses the reference. */
	atomic_thread_fence(memory_order_release);
	while ((qp = LIST_FIRST(&dev->referencing)))
		forget_references(qp);
}

/* Whether packets of the QP are unacknowledged. False: the peer has acknowledged all payloads, so
 * it has read them. */
static bool is_outstanding(const struct urxe_qp *qp)
{
	return requester_outstanding(&qp->req);
}

void end_references(struct urxe_qp *qp)
{
	if (!qp->req.referenced)
		return;
	if (is_outstanding(qp))
		begin_generation(qp->dev);
	else
		forget_references(qp);
}

/* Whether a segment of the SEND has the key. A request with inline data has no segments. */
static bool names_key(const struct send_wqe *wqe, uint32_t lkey)
{
	struct sge_list list = wqe_sge_list(wqe, 0);

	if (wqe->kind != WR_SEND)
		return false;
	for (uint32_t i = 0; i < list.n; i++)
		if (list.segs[i].lkey == lkey)
			return true;
	return false;
}

/* Whether a SEND that the requester has sent, fully or in part, names the key. Request `cur` may
 * have been sent in part. */
static bool sends_by_key(const struct urxe_qp *qp, uint32_t lkey)
{
	const struct sq *sq = &qp->sq;

	for (uint32_t i = sq->tail; i != sq->head && (int32_t)(sq->cur - i) >= 0; i++)
		if (names_key(sq_wqe(sq, i), lkey))
			return true;
	return false;
}

void end_references_by_key(struct urxe_dev *dev, uint32_t lkey)
{
	struct urxe_qp *qp, *next;

	for (qp = LIST_FIRST(&dev->referencing); qp; qp = next) {
		next = LIST_NEXT(qp, reference_link);
		if (!is_outstanding(qp)) {
			forget_references(qp);
		} else if (sends_by_key(qp, lkey)) {
			begin_generation(dev);
			return;
		}
	}
}

void end_all_references(struct urxe_dev *dev)
{
	struct urxe_qp *qp;

	while ((qp = LIST_FIRST(&dev->referencing)) && !is_outstanding(qp))
		forget_references(qp);
	if (qp)
		begin_generation(dev);
}
