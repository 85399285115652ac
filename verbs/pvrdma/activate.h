/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Activation by the driver: creates the device's engine, which lives until the device's reset. */
#ifndef URXE_PVRDMA_ACTIVATE_H
#define URXE_PVRDMA_ACTIVATE_H

struct pvrdma;
struct urxe_dev_attr;

/* Activates the device; no effect if it is active. 0; -EINVAL: no shared region is loaded;
 * -ENOMEM. */
int pv_activate(struct pvrdma *dev);

/* Sets those members of *attr that connect an engine with this device: context, callbacks, MTU, and
 * the copy transport. */
void pv_set_engine_owner(struct pvrdma *dev, struct urxe_dev_attr *attr);

/* Resets the device as pvrdma_reset does, but does not write to pvrdma_attr.uar: another process
 * may use that memory, and needs the guest's doorbells in it. */
void pv_reset_quietly(struct pvrdma *dev);

#endif
