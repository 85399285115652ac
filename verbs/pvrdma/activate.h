/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Activation: the device has an engine from then on, until its reset. */
#ifndef URXE_PVRDMA_ACTIVATE_H
#define URXE_PVRDMA_ACTIVATE_H

struct pvrdma;

/* -EINVAL: no shared region is loaded; -ENOMEM. Activating again has no effect. */
int pv_activate(struct pvrdma *dev);

#endif
