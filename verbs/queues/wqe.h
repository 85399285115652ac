/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads work requests from librxe's rings: copies each byte once, then checks the copy, because the
 * application can change the ring at any time. For verbs_qp.c and verbs_recv.c.
 */
#ifndef URXE_VERBS_QUEUES_WQE_H
#define URXE_VERBS_QUEUES_WQE_H

#include <stdint.h>

#include <linux/types.h>
#include <rdma/rdma_user_rxe.h>
#include <rxe/types.h>

struct send_request {
	struct urxe_send_wr wr; /* segs, and path of UD, point into this structure */
	struct urxe_path path;
	uint32_t ah; /* UD: handle of the address handle; 0: wr.path points to `path` */
	struct urxe_seg segs[URXE_MAX_SGE];
};

struct recv_request {
	struct urxe_recv_wr wr;
	struct urxe_seg segs[URXE_MAX_SGE];
};

/* Limits of the queue pair, against which wqe_read_send checks a request. */
struct wqe_limits {
	uint8_t qp_type; /* enum urxe_qp_type */
	uint32_t max_sge;
	uint32_t max_inline;
};

/* Read the request at an element of the ring. Inline data stays in the ring, where the program may
 * change it: the engine copies it once. 0; -EINVAL: malformed. Sets wr.wr_id in both cases. */
int wqe_read_send(struct send_request *request, const struct rxe_send_wqe *wqe,
		  const struct wqe_limits *limits);
int wqe_read_recv(struct recv_request *request, const struct rxe_recv_wqe *wqe, uint32_t max_sge);

#endif
