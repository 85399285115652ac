/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requester: turns send requests into packets (IBA volume 1, 9.7.3, 9.8). */
#ifndef URXE_REQ_H
#define URXE_REQ_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

#include "objects/sq.h"

/*
 * What a QP may have unacknowledged where the owner names no limit. A loss is
 * repaired after a round trip and some, during which the rest has to go on: this
 * holds about four round trips of 20 us at 25 Gb/s.
 */
#define REQ_WINDOW_PACKETS 256
#define REQ_WINDOW_BYTES   (512 * 1024)
/*
 * The same within the host, where a full queue waits and loses nothing. A packet is then on its way
 * for long enough to leave the sending core's cache (1 MiB here) for the one that all cores share,
 * which the receiver's core reads twice as fast. Fewer than an inbox holds.
 */
#define REQ_LOCAL_PACKETS 448
/* PSNs in flight and their duplicates stay on one side of the PSN space (IBA 9.7.1). */
#define REQ_MAX_WINDOW (1u << 22)

/* Executes requests at the front of the queue that need no packet, if nothing is to be repeated
 * before. True: there are no others in the queue. */
bool req_execute(struct urxe_qp *qp);
/* Writes the next request packet; false where there is none to send now. */
bool req_output(struct urxe_qp *qp, struct urxe_frame *frame);
/* Whether nothing that was begun is outstanding (IBA 10.3.1.4). */
bool req_drained(const struct urxe_qp *qp);
/* Tells an owner that waits for it that a send queue in SQD has drained. */
void req_check_drained(struct urxe_qp *qp);

/*
 * Packets of a message that one READ request asks for. A long READ is sent as
 * several requests inside its PSN range, so that its responses stay within the
 * window; their borders are fixed, since a responder accepts a repeated READ
 * only inside the range of the original one (IBA 9.7.5.1.4).
 */
uint32_t req_read_chunk(const struct urxe_qp *qp);

#endif
