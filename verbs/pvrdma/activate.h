/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Activation: the device has an engine from then on, until its reset. */
#ifndef URXE_PVRDMA_ACTIVATE_H
#define URXE_PVRDMA_ACTIVATE_H

struct pvrdma;
struct urxe_dev_attr;

/* -EINVAL: no shared region is loaded; -ENOMEM. Activating again has no effect. */
int pv_activate(struct pvrdma *dev);

/* Sets the attributes of an engine that are this device's: context, callbacks, MTU, and the copy
 * transport. */
void pv_set_engine_owner(struct pvrdma *dev, struct urxe_dev_attr *attr);

/* As pvrdma_reset, but doorbells of the guest stay in pvrdma_attr.uar: another process may have
 * that memory. */
void pv_reset_quietly(struct pvrdma *dev);

#endif
