/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames of the device: to the network, from the network, and between its own queue pairs. */
#ifndef URXE_PVRDMA_FRAMES_H
#define URXE_PVRDMA_FRAMES_H

#include "device.h"

/* Builds the frames that the engine has to send now, for pvrdma_output, as many as are kept. */
void pv_frames_stage(struct pvrdma *dev);
void pv_frames_drop(struct pvrdma *dev);

#endif
