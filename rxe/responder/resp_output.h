/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends the responses: READ and atomic responses, acknowledgements and NAKs. */
#ifndef URXE_RESPONDER_RESP_OUTPUT_H
#define URXE_RESPONDER_RESP_OUTPUT_H

#include <stdbool.h>

#include <rxe/rxe.h>

/* Writes the next response packet into the frame; false: none is due, or pacing holds a READ
 * response. */
bool resp_output(struct urxe_qp *qp, struct urxe_frame *frame);

#endif
