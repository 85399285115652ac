/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/verbs_recv.h"

#include "queues/wqe.h"

/*
 * A malformed request is replaced by a request whose only segment no key covers, so the message
 * that consumes it ends in a local error, as with the Linux driver's RESPST_ERR_MALFORMED_WQE.
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
