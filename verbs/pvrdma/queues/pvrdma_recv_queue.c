/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/pvrdma_recv_queue.h"

#include "queues/wqe_size.h"

/*
 * A malformed request is replaced by one whose only segment no key covers (the engine has no key
 * 0), so the message that consumes it ends in a local error.
 */
static const struct urxe_seg bad_segment = {.addr = 0, .length = UINT32_MAX, .lkey = 0};

uint32_t pv_recv_wqe_size(uint32_t max_sge)
{
	return pv_wqe_size(sizeof(struct pvrdma_rq_wqe_hdr), max_sge);
}

static void read_wqe(const struct pv_recv_queue *queue, struct pvrdma *dev, struct urxe_recv_wr *wr,
		     struct urxe_seg *segs)
{
	const uint8_t *slot = pv_ring_slot(&queue->ring, queue->ring.index);
	struct pvrdma_rq_wqe_hdr header;

	pv_copy_once(&header, slot, sizeof(header));
	*wr = (struct urxe_recv_wr){.wr_id = header.wr_id, .n_segs = header.num_sge, .segs = segs};
	if (header.num_sge > queue->max_sge || !pv_ring_slot_is_intact(&queue->ring, slot)) {
		pv_count(dev, PVRDMA_RECVS_BAD);
		wr->n_segs = 1;
		wr->segs = &bad_segment;
		return;
	}
	pv_copy_once(segs, slot + sizeof(header), header.num_sge * sizeof(*segs));
}

bool pv_recv_queue_refill(struct pvrdma *dev, struct pv_recv_queue *queue)
{
	struct urxe_seg segs[URXE_MAX_SGE];
	struct urxe_recv_wr wr;
	uint32_t n, posted = 0;

	if (queue->refilling || !queue->ring.indices)
		return false;
	if (!pv_ring_filled(&queue->ring, &n)) {
		pv_count(dev, PVRDMA_RING_BAD);
		return false;
	}
	queue->refilling = true;
	for (; posted < n; posted++) {
		read_wqe(queue, dev, &wr, segs);
		if (urxe_post_recv(queue->rq, &wr)) {
			dev->recvs_behind = true;
			break;
		}
		pv_ring_consume(&queue->ring);
	}
	queue->refilling = false;
	pv_count_n(dev, PVRDMA_RECVS, posted);
	return posted > 0;
}

void pv_recv_queue_on_refill(void *ctx)
{
	struct pv_object *object = ctx;

	pv_recv_queue_refill(object->dev, object->kind == PV_QP ? &((struct pv_qp *)ctx)->recv
								: &((struct pv_srq *)ctx)->recv);
}
