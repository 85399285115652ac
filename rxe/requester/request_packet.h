/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Builds request packets from send requests (IBA volume 1, 9.3, 9.4). requester.c is the caller. */
#ifndef URXE_REQUESTER_REQUEST_PACKET_H
#define URXE_REQUESTER_REQUEST_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

struct header_template;
struct send_wqe;

/* The packet to build. */
struct request_packet {
	const struct send_wqe *wqe;
	uint32_t psn;
	uint32_t span; /* number of PSNs: of READ responses, or of the packets of a reference; else
			  1 */
	bool again;    /* the packet was sent before */
	uint32_t pieces; /* number of pieces, in dev->copy, of the payload to reference; 0: the
			    frame has the payload */
};

/* Builds the packet in the frame; false: the memory of the request cannot be read. */
bool reqpkt_build(struct urxe_qp *qp, struct request_packet *rp,
		  const struct header_template *header, struct urxe_frame *frame);
/* P_Key index of the request: QP 1 has one per request (IBA 10.9), other QPs have their own. */
uint16_t reqpkt_pkey_index(const struct urxe_qp *qp, const struct send_wqe *wqe);

#endif
