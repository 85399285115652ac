/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/verbs_recv.h"

#include "queues/wqe.h"

/*
 * Takes the place of the segments of a receive request that has too many. No region has the key 0,
 * so a message that writes to the buffer ends in a local error, as with RESPST_ERR_MALFORMED_WQE of
 * Linux' rdma_rxe. A message without payload writes nothing, and succeeds, except a datagram, which
 * writes its GRH.
 */
static const struct urxe_seg bad_segment = {.addr = 0, .length = UINT32_MAX, .lkey = 0};

void recv_queue_refill(struct recv_queue *queue)
{
	struct recv_request request;
	uint32_t n = work_queue_posted(&queue->wq);

	if (queue->refilling)
		return;
	queue->refilling = true;
	while (n--) {
		const void *element = queue_element(&queue->wq.ring, queue->wq.cursor);

		if (wqe_read_recv(&request, element, queue->max_sge)) {
			request.wr.n_segs = 1;
			request.wr.segs = &bad_segment;
		}
		if (urxe_post_recv(queue->rq, &request.wr))
			break;
		queue->wq.cursor++;
	}
	queue->refilling = false;
}
