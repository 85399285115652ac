/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames of the device: to the network, from the network, and between its own queue pairs. */
#ifndef URXE_PVRDMA_FRAMES_H
#define URXE_PVRDMA_FRAMES_H

#include "pvrdma_device.h"

/*
 * Builds the acknowledgement that the QP owes its peer, with up to 62 frames that go before it, and
 * keeps them for pvrdma_output; not if congestion control holds READ responses before it. All QPs
 * together keep at most 64 frames of more than 128 bytes, which no acknowledgement has; others are
 * dropped. Call it before the QP is destroyed, reset or failed, and can send nothing more.
 */
void pv_frames_stage_acks(struct pvrdma *dev, struct urxe_qp *qp);
/* Frees the kept frames, unsent. */
void pv_frames_drop(struct pvrdma *dev);

#endif
