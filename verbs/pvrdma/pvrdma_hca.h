/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA of the host (struct pvrdma_hca). The engine gets the HCA when the device is active, is
 * not paused, may access memory, and one of the machine's GIDs is the HCA's. The engine keeps the
 * HCA until one of the first three conditions fails, or pvrdma_set_hca replaces the HCA. The HCA
 * executes only queue pairs of the machine's programs; those of the machine's kernel are the
 * engine's.
 */
#ifndef URXE_PVRDMA_PVRDMA_HCA_H
#define URXE_PVRDMA_PVRDMA_HCA_H

#include "pvrdma_device.h"

/*
 * Limits of pv_hca_has_room(). Programs register some memory several times, so all regions together
 * may have PV_HCA_TIMES times as many pages as the machine. For each page of a region the host
 * keeps about 50 bytes: page table entries, a list of pages, and the HCA's own table. At the limit,
 * this bookkeeping is 5 % of the machine's memory. A region's own objects, in the kernel and in
 * libibverbs, take as much as the bookkeeping of PV_HCA_REGION_PAGES pages.
 */
#define PV_HCA_TIMES        4
#define PV_HCA_REGION_PAGES 16
/* Least max_mr. Behind a virtual IOMMU the device sees only memory that the guest has mapped, which
 * may be none when the driver reads max_mr. */
#define PV_HCA_LEAST_REGIONS 1024

/* Whether the HCA gets new queue pairs and shared receive queues of the PD: the PD is a program's,
 * the engine has the HCA, and one of the machine's GIDs is still the HCA's. */
bool pv_hca_serves(const struct pv_pd *pd);

/* Gives the engine the HCA, if the conditions in this file's first comment are met. Call it when
 * one of them may have become true. */
void pv_hca_attach(struct pvrdma *dev);
/* Takes the HCA from the engine, if the engine has it. Queue pairs that the HCA executes fail. A
 * command that waits for the HCA is executed without it. */
void pv_hca_detach(struct pvrdma *dev);
/* Call it when entry `index` of the engine's GID table has changed. Tells the HCA, if the engine
 * has it; else calls pv_hca_attach(), because this GID may be the HCA's. */
void pv_hca_set_gid(struct pvrdma *dev, uint32_t index);
/* Prepares the HCA for datagrams, or a connection, of the PD's queue pairs along the path. 0, or an
 * error of pvrdma_hca.prepare. Call it while the engine has the HCA. */
int pv_hca_prepare(const struct pv_pd *pd, const struct urxe_path *path, bool connects);
/*
 * Reduces the limits and the atomics to the HCA's, if there is one. Queue sizes and numbers of
 * segments stay powers of two. The limit of max_mr is the number of one-page regions that
 * pv_hca_has_room() permits for the memory that the device sees, but at least PV_HCA_LEAST_REGIONS.
 */
void pv_hca_limit(const struct pvrdma *dev, struct pv_device_caps *caps);
/*
 * Whether the HCA may have one more region of `bytes` bytes; true if no HCA is attached. The limit
 * is PV_HCA_TIMES times the pages of the machine's memory. Each region counts its own pages and
 * PV_HCA_REGION_PAGES more.
 */
bool pv_hca_has_room(const struct pvrdma *dev, uint64_t bytes);
/* If the region has some of the bytes (NULL: in any case), deregisters it at the HCA, so that the
 * HCA does not access them any more. */
void pv_hca_withdraw(struct urxe_mr *mr, const struct urxe_extent *bytes);

#endif
