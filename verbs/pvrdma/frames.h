/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames of the device: to the network, from the network, and between its own queue pairs. */
#ifndef URXE_PVRDMA_FRAMES_H
#define URXE_PVRDMA_FRAMES_H

#include "pvrdma_device.h"

/*
 * Builds frames that the engine has to send now, and keeps them for pvrdma_output. Call it before a
 * QP is destroyed or reset, which could not send them later. It keeps at most 64 frames.
 */
void pv_frames_stage(struct pvrdma *dev);
/* Frees the kept frames, unsent. */
void pv_frames_drop(struct pvrdma *dev);

#endif
