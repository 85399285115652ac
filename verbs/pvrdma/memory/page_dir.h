/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Page directories: how the driver names the pages of a ring or a memory region. The directory is a
 * page of addresses of tables; each table is a page of addresses of pages. The device copies the
 * directory and each table once.
 */
#ifndef URXE_PVRDMA_PAGE_DIR_H
#define URXE_PVRDMA_PAGE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>
#include <vnic/guest_memory.h>

#include "memory/guest_ring.h"

struct pv_page_dir {
	const struct vnic_guest_memory *memory;
	uint64_t addr;    /* of the directory */
	uint32_t n_pages; /* 1 to PV_DIR_PAGES; further entries are not read */
	bool write;       /* the pages must be writable */
};

/*
 * Sets *pages to the first n of the `given` pages, all writable, of the directory at `addr`.
 * -EINVAL: n is out of range, or exceeds `given`; -EFAULT: an address is no writable page of the
 * guest's memory; -ENOMEM. Then *pages is unchanged.
 */
int pv_pages_open(struct pv_pages *pages, const struct vnic_guest_memory *memory, uint64_t addr,
		  uint32_t n, uint32_t given);
/*
 * Lists the bytes [offset, offset + length) of the pages; pages that lie side by side in this
 * process, in one region of the guest's memory, become one extent. `offset` is less than a page.
 * `extents` has room for n_pages. -EINVAL: n_pages is out of range, or the pages are too few;
 * -EFAULT: an address is no page of the guest's memory, or the page must be writable and is not.
 */
int pv_page_dir_extents(const struct pv_page_dir *dir, uint64_t offset, uint64_t length,
			struct urxe_extent *extents, uint32_t *n_extents);

#endif
