/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The common part of all objects of the driver (struct pv_object): handle, users, doorbell page,
 * cost. */
#ifndef URXE_PVRDMA_OBJECT_H
#define URXE_PVRDMA_OBJECT_H

#include <stdint.h>

#include "pvrdma_device.h"

void pv_objects_init(struct pvrdma *dev);
/*
 * Initialises *object, and gives it a handle. `uar_page`: page of BAR2 whose doorbells reach it.
 * `bytes`: memory that the object takes in this process. 0; -ENOMEM: no memory, or the guest's
 * objects would take more than PV_MEMORY_MAX; -ENOSPC: no handle is free.
 */
int pv_object_add(struct pvrdma *dev, struct pv_object *object, enum pv_kind kind,
		  uint32_t uar_page, uint64_t bytes);
/* Takes the handle back; the caller frees the object. */
void pv_object_remove(struct pv_object *object);
/* The object of that kind and handle; NULL: there is none. */
void *pv_object_find(const struct pvrdma *dev, enum pv_kind kind, uint32_t handle);
/* Iterates over the objects of that kind: *at starts at 0; NULL at the end. */
void *pv_object_next(const struct pvrdma *dev, enum pv_kind kind, uint32_t *at);
/*
 * Destroys the object of that kind and handle, and before it the objects that use it. -ENOENT:
 * there is no such object. Linux' driver destroys an object after those that use it, but does not
 * know objects whose creation it has given up, because a signal came before the response.
 */
int pv_object_destroy(struct pvrdma *dev, enum pv_kind kind, uint32_t handle);
/* Closes all objects, users before the objects that they use. The engine must still exist. */
void pv_objects_close(struct pvrdma *dev);

#endif
