/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What all objects of the driver have: a handle, users, a page of doorbells, and a cost. */
#ifndef URXE_PVRDMA_OBJECT_H
#define URXE_PVRDMA_OBJECT_H

#include <stdint.h>

#include "pvrdma_device.h"

void pv_objects_init(struct pvrdma *dev);
/*
 * Gives the object a handle. `bytes`: memory that the object takes in this process. -ENOMEM: no
 * memory, or the guest's objects would take more than PV_MEMORY_MAX; -ENOSPC: no handle is free.
 */
int pv_object_add(struct pvrdma *dev, struct pv_object *object, enum pv_kind kind,
		  uint32_t uar_page, uint64_t bytes);
/* Takes the handle back; the caller frees the object. */
void pv_object_remove(struct pv_object *object);
/* NULL: there is none. */
void *pv_object_find(const struct pvrdma *dev, enum pv_kind kind, uint32_t handle);
/* As pv_handles_next. */
void *pv_object_next(const struct pvrdma *dev, enum pv_kind kind, uint32_t *at);
/* Closes all objects, in an order in which none is in use. The engine must be there. */
void pv_objects_close(struct pvrdma *dev);

#endif
