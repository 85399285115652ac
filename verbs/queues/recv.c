/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/recv.h"

#include "queues/wqe.h"

/*
 * A malformed request must neither vanish nor be obeyed. In its place goes one
 * whose only segment no key covers, so that the message that takes it ends in a
 * local error (the Linux driver's RESPST_ERR_MALFORMED_WQE).
 */
static const struct urxe_seg nowhere = {.addr = 0, .length = UINT32_MAX, .lkey = 0};

void recv_queue_refill(struct recv_queue *queue)
{
	struct recv_request request;
	uint32_t n = work_queue_new(&queue->wq);

	if (queue->refilling)
		return;
	queue->refilling = true;
	while (n--) {
		const void *element = queue_element(&queue->wq.ring, queue->wq.cursor);

		if (wqe_read_recv(&request, element, queue->max_sge)) {
			request.wr.n_segs = 1;
			request.wr.segs = &nowhere;
		}
		if (urxe_post_recv(queue->rq, &request.wr))
			break;
		queue->wq.cursor++;
	}
	queue->refilling = false;
}
