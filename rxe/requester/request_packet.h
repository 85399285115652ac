/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Request packets: what stands in one, by its place in its message (IBA volume 1, 9.3, 9.4). */
#ifndef URXE_REQPKT_H
#define URXE_REQPKT_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

struct header_template;
struct send_wqe;

/* A packet to be built. */
struct request_packet {
	const struct send_wqe *wqe;
	uint32_t psn;
	uint32_t span; /* PSNs that it takes; with a reference as many as that has packets */
	bool again;    /* it was sent before */
	const uint8_t *referenced; /* its payload; NULL: it goes into the frame */
};

/* Writes it; false where the request's memory cannot be read. */
bool reqpkt_build(struct urxe_qp *qp, struct request_packet *rp,
		  const struct header_template *header, struct urxe_frame *frame);
/* QP 1 speaks for all partitions, and its requests say for which (IBA 10.9). */
uint16_t reqpkt_pkey_index(const struct urxe_qp *qp, const struct send_wqe *wqe);

#endif
