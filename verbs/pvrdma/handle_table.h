/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tables from handles to objects. A freed handle is the last to be used again. */
#ifndef URXE_PVRDMA_HANDLE_TABLE_H
#define URXE_PVRDMA_HANDLE_TABLE_H

#include <stdint.h>

struct pv_handle_slot {
	void *object;       /* NULL: free */
	uint32_t next_free; /* of a free slot: the handle to be used after it */
};

struct pv_handle_table {
	struct pv_handle_slot *slots;
	uint32_t first;  /* lowest handle */
	uint32_t limit;  /* handles are below it */
	uint32_t room;   /* allocated slots */
	uint32_t fresh;  /* handles from this one on were never used */
	uint32_t oldest; /* freed handles, oldest and newest; UINT32_MAX: none */
	uint32_t newest;
	uint32_t used;
};

void pv_handles_init(struct pv_handle_table *table, uint32_t first, uint32_t limit);
/* The objects are the caller's. */
void pv_handles_free(struct pv_handle_table *table);
/* -ENOSPC: all handles are in use; -ENOMEM. */
int pv_handles_add(struct pv_handle_table *table, void *object, uint32_t *handle);
void pv_handles_remove(struct pv_handle_table *table, uint32_t handle);
/* NULL: no object has the handle. */
void *pv_handles_find(const struct pv_handle_table *table, uint32_t handle);
/* Iterates over the objects: *at starts at 0; NULL at the end. */
void *pv_handles_next(const struct pv_handle_table *table, uint32_t *at);

#endif
