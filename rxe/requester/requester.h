/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requester: turns send requests into packets (IBA volume 1, 9.7.3, 9.8). */
#ifndef URXE_REQUESTER_REQUESTER_H
#define URXE_REQUESTER_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

#include "objects/sq.h"

/*
 * Default window of a QP whose peer is on another host. A repair takes more than a round trip, and
 * the transfer should continue meanwhile: with a path MTU of 1024 this window holds about four
 * round trips of 20 us at 25 Gb/s.
 */
#define REQ_WINDOW_PACKETS 256
#define REQ_WINDOW_BYTES   (512 * 1024)
/*
 * Default window within the host, where a full queue loses no packet; smaller than an inbox. With
 * so many packets outstanding, a packet has moved from the sending core's cache (1 MiB here) to the
 * shared cache when the receiver reads it, which makes the reads twice as fast.
 */
#define REQ_LOCAL_PACKETS 448
/*
 * Default window of a QP that sends payload references within the host. A reference is one frame of
 * the inbox, and stands for up to 64 packets of 4 KiB. 8 MiB keep the receiver busy for a time
 * slice of the scheduler.
 */
#define REQ_REFERRED_PACKETS 2048
/* Largest window: outstanding PSNs and their duplicates cover less than half of the PSN space (IBA
 * 9.7.1). */
#define REQ_MAX_WINDOW (1u << 22)

/* Executes requests without packets, from `cur` on, up to the first that needs packets; executes
 * none if packets have to be sent again. True: `cur` is at the end of the queue, so there is
 * nothing to send. */
bool req_execute(struct urxe_qp *qp);
/* Writes the next request packet into the frame; false: none can be sent now. */
bool req_output(struct urxe_qp *qp, struct urxe_frame *frame);
/* Whether all sent packets are acknowledged, and no message is sent in part (IBA 10.3.1.4). */
bool req_drained(const struct urxe_qp *qp);
/* The QP has entered SQD. Acts as req_check_drained. Before that, an RC requester that has sent no
 * message in part repeats its newest packet with AckReq, if that packet has not asked for an
 * acknowledgement (retransmit_for_ack). */
void req_begin_drain(struct urxe_qp *qp);
/* Reports that the send queue in SQD has drained, if the owner has asked for the event. */
void req_check_drained(struct urxe_qp *qp);

/*
 * Number of response packets per READ request. A long READ goes as several requests inside its PSN
 * range, so that the responses stay within the window. The borders are fixed, because a responder
 * accepts a repeated READ only inside the range of the original one (IBA 9.7.5.1.4).
 */
uint32_t req_read_chunk(const struct urxe_qp *qp);

#endif
