/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions of the guest, of three kinds: a list of pages, all memory (DMA), and fast
 * registration. */
#ifndef URXE_PVRDMA_PVRDMA_MR_H
#define URXE_PVRDMA_PVRDMA_MR_H

#include "memory/memory_change.h"
#include "pvrdma_device.h"

/* The engine's access rights for the driver's access flags. Flags that are no rights are left out.
 */
uint32_t pv_mr_access(uint32_t flags);
/* Creates a region for the command CREATE_MR. Errors are those of the command. */
int pv_mr_open(struct pvrdma *dev, struct pv_pd *pd, const struct pv_cmd_create_mr *request,
	       struct pv_mr **mr);
void pv_mr_close(struct pv_mr *mr);
uint32_t pv_mr_key(const struct pv_mr *mr);
/* The engine's region; NULL: the region is for fast registration, and nothing is registered now. */
struct urxe_mr *pv_mr_region(const struct pv_mr *mr);

/* Withdraws the removed bytes of guest memory from the region, at the engine and the HCA. If the
 * engine lacks memory for that, the region loses all bytes. */
void pv_mr_memory_removed(struct pv_mr *mr, const struct pv_removed *removed);
/* Call it when the guest has got more memory: a DMA region covers that, too, from now on. If the
 * engine lacks memory for that, the region stays as it is. */
void pv_mr_memory_added(struct pv_mr *mr);

/* urxe_ops.page_list: reads the page list of a fast registration. *extents stays valid until the
 * next call. False: the request is out of range, or its list names pages that the guest lacks. */
bool pv_mr_page_list(void *ctx, const struct urxe_fast_reg *request,
		     const struct urxe_extent **extents, uint32_t *n_extents);

#endif
