/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions of the guest: of a list of pages, of all memory (DMA), and for fast registration.
 */
#ifndef URXE_PVRDMA_PVRDMA_MR_H
#define URXE_PVRDMA_PVRDMA_MR_H

#include "memory/page_list.h"
#include "pvrdma_device.h"

/* The engine's access rights for the driver's access flags. Flags that are no rights are left out.
 */
uint32_t pv_mr_access(uint32_t flags);
int pv_mr_open(struct pvrdma *dev, struct pv_pd *pd, const struct pv_cmd_create_mr *request,
	       struct pv_mr **mr);
void pv_mr_close(struct pv_mr *mr);
uint32_t pv_mr_key(const struct pv_mr *mr);
/* The engine's region; NULL: fast registration, and nothing is registered. */
struct urxe_mr *pv_mr_region(const struct pv_mr *mr);

/* Withdraws bytes of guest memory from the region. */
void pv_mr_memory_removed(struct pv_mr *mr, const struct pv_removed *removed);
/* The guest has more memory: a DMA region covers it, too. */
void pv_mr_memory_added(struct pv_mr *mr);

/* Callback of the engine: the page list of a fast registration. */
bool pv_mr_page_list(void *ctx, const struct urxe_fast_reg *request,
		     const struct urxe_extent **extents, uint32_t *n_extents);

#endif
