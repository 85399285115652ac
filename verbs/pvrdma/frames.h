/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames of the device: to the network, from the network, and between its own queue pairs. */
#ifndef URXE_PVRDMA_FRAMES_H
#define URXE_PVRDMA_FRAMES_H

#include "pvrdma_device.h"

/*
 * Builds the acknowledgement that the QP owes its peer, and the frames that go before it, and keeps
 * them for pvrdma_output: at most 63 frames, some perhaps of other QPs. Builds no acknowledgement
 * if congestion control holds READ responses before it, or if the driver permits no access to
 * memory. An acknowledgement has at most 128 bytes; of longer frames, all QPs together keep 64, and
 * the device drops further ones. Call it before a command destroys the QP, or moves it to RESET or
 * the error state: afterwards the QP can send nothing.
 */
void pv_frames_stage_up_to_ack(struct pvrdma *dev, struct urxe_qp *qp);
/* Frees the kept frames without sending them. */
void pv_frames_drop(struct pvrdma *dev);

#endif
