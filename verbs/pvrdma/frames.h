/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames of the device: to the network, from the network, and between its own queue pairs. */
#ifndef URXE_PVRDMA_FRAMES_H
#define URXE_PVRDMA_FRAMES_H

#include "pvrdma_device.h"

/*
 * Builds frames that the engine has to send now, and keeps them for pvrdma_output: a QP that ends
 * next could not send them later. It keeps a limited number.
 */
void pv_frames_stage(struct pvrdma *dev);
/* Frees the frames that were kept. */
void pv_frames_drop(struct pvrdma *dev);

#endif
