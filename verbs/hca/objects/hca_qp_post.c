/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of the HCA's queue pairs: from the engine to the HCA, and their completion. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "hca/hca_device.h"
#include "hca_cq.h"
#include "hca_qp.h"
#include "wr.h"

/* If the HCA has refused inline data for the queue pair (qp->inline_data is set), copies the inline
 * data of *wr to registered memory, and makes *wr refer to the copy. `number`: the request's, as in
 * qp->posted. */
static void copy_inline(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_sge *sge,
			uint32_t number)
{
	uint8_t *piece = qp->inline_data + (size_t)(number & qp->ring_mask) * qp->max_inline;

	if (!(wr->send_flags & IBV_SEND_INLINE) || !qp->inline_data || sge->length > qp->max_inline)
		return;
	memcpy(piece, (const void *)(uintptr_t)sge->addr, sge->length);
	sge->addr = (uintptr_t)piece;
	sge->lkey = qp->inline_mr->lkey;
	wr->send_flags &= ~(unsigned int)IBV_SEND_INLINE;
}

/* Sets the address handle of a datagram; no effect for other queue pairs than UD. `number`: the
 * request's, as in `posted`. 0 or a negative errno value. */
static int address_datagram(struct hca_qp *qp, struct ibv_send_wr *wr, const struct urxe_path *path,
			    uint32_t number)
{
	struct hca_ah **ah;
	int rc;

	if (!qp->ahs)
		return 0;
	ah = &qp->ahs[number & qp->ring_mask];
	rc = hca_ah_get(qp->hca, qp->pd, path, ah);
	if (!rc)
		wr->wr.ud.ah = (*ah)->ah;
	return rc;
}

/* Converts up to HCA_WR_BATCH of the n requests to a list for ibv_post_send(), and returns their
 * number. If an error ends the list early, *rc is a negative errno value (-ENOMEM: the send queue
 * is full, or no memory), else 0. */
static uint32_t describe(struct hca_qp *qp, struct ibv_send_wr *list, struct ibv_sge *sges,
			 const struct urxe_send_wr *wrs, uint32_t n, int *rc)
{
	uint32_t room = qp->max_sends - qp->sends, i;

	*rc = 0;
	for (i = 0; i < n && i < HCA_WR_BATCH; i++) {
		*rc = i < room ? address_datagram(qp, &list[i], wrs[i].path, qp->posted + i)
			       : -ENOMEM;
		if (*rc)
			break;
		hca_wr_send(&list[i], &sges[i], &wrs[i]);
		copy_inline(qp, &list[i], &sges[i], qp->posted + i);
		list[i].wr_id = work_id_of_send(qp->id);
		list[i].next = &list[i + 1];
	}
	if (i)
		list[i - 1].next = NULL;
	return i;
}

static void put_ahs(struct hca_qp *qp, uint32_t from, uint32_t to)
{
	for (; qp->ahs && from != to; from++)
		hca_ah_put(qp->hca, qp->ahs[from & qp->ring_mask]);
}

static uint32_t post_batch(struct hca_qp *qp, const struct urxe_send_wr *wrs, uint32_t n, int *rc)
{
	struct ibv_send_wr list[HCA_WR_BATCH + 1], *bad = NULL;
	struct ibv_sge sges[HCA_WR_BATCH];
	uint32_t described = describe(qp, list, sges, wrs, n, rc), taken;
	int error, cancel;

	if (!described)
		return 0;
	/* Some providers ring by write(2), a cancellation point, but this thread has the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	error = ibv_post_send(qp->ibv, list, &bad);
	pthread_setcancelstate(cancel, NULL);
	taken = hca_wr_taken(error, bad ? bad - list : -1, described);
	put_ahs(qp, qp->posted + taken, qp->posted + described);
	qp->posted += taken;
	qp->sends += taken;
	hca_cq_expect(qp->send_cq, taken);
	if (error)
		*rc = hca_wr_error(error);
	return taken;
}

uint32_t hca_qp_post_send(void *hca_qp, const struct urxe_send_wr *wrs, uint32_t n, int *rc)
{
	struct hca_qp *qp = hca_qp;
	uint32_t done = 0, taken;

	do {
		taken = post_batch(qp, wrs + done, n - done, rc);
		done += taken;
	} while (taken == HCA_WR_BATCH && done < n);
	return done;
}

uint32_t hca_qp_post_recv(void *hca_qp, const struct urxe_recv_wr *wrs, uint32_t n, int *rc)
{
	struct ibv_recv_wr list[HCA_WR_BATCH + 1], *bad = NULL;
	struct hca_qp *qp = hca_qp;
	uint32_t done = 0, described, taken;

	do {
		described = hca_wr_receives(list, wrs + done, n - done, &qp->receives, qp->id);
		*rc = -ENOMEM;
		if (!described)
			break;
		*rc = ibv_post_recv(qp->ibv, list, &bad);
		taken = hca_wr_taken(*rc, bad ? bad - list : -1, described);
		hca_wr_unused(list + taken, described - taken, &qp->receives);
		*rc = hca_wr_error(*rc);
		hca_cq_expect(qp->recv_cq, taken);
		done += taken;
	} while (taken == described && done < n);
	return done;
}

bool hca_qp_sent(struct hca_qp *qp)
{
	if (!qp->sends)
		return false;
	put_ahs(qp, qp->posted - qp->sends, qp->posted - qp->sends + 1);
	qp->sends--;
	qp->send_cq->outstanding--;
	return true;
}

bool hca_qp_received(struct hca_qp *qp, uint32_t slot, uint64_t *wr_id)
{
	if (!work_slots_return(&qp->receives, slot, wr_id))
		return false;
	qp->recv_cq->outstanding--;
	return true;
}

void hca_qp_forget_requests(struct hca_qp *qp)
{
	put_ahs(qp, qp->posted - qp->sends, qp->posted);
	qp->send_cq->outstanding -= qp->sends;
	qp->recv_cq->outstanding -= qp->receives.used;
	qp->sends = 0;
	work_slots_clear(&qp->receives);
}
