/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of a region as one range of addresses, as libibverbs registers it. A region of a
 * virtual machine is a list of pages of the machine's memory, which this process has mapped from a
 * file. If the pages are not side by side in that mapping, they get a second mapping in which they
 * are.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_FLAT_MEMORY_H
#define URXE_VERBS_HCA_OBJECTS_FLAT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct urxe_mr_attr;

/* The maximum sum of n_pieces over all regions of a process. Each piece is a mapping, of which
 * Linux permits a process 65,530 by default (vm.max_map_count). */
#define FLAT_PIECES_MAX 32768u

struct flat_memory {
	void *addr;        /* address of the region's first byte in that range */
	void *mapping;     /* NULL: the memory itself is one range */
	size_t mapped;     /* bytes of the mapping */
	uint32_t n_pieces; /* extents of the region that `mapping` consists of; 0: no mapping */
};

/*
 * Fills *memory for the region. Each extent of *attr must lie in one mapping. `room`: the most
 * pieces that a second mapping may have. 0, or -EOPNOTSUPP: the region has a hole or no extent, its
 * extents are no whole pages (but for both ends of the region) or, if not side by side, more than
 * `room`; or Linux refuses a second mapping, as of private memory.
 */
int flat_memory_open(struct flat_memory *memory, const struct urxe_mr_attr *attr, uint32_t room);
/* Unmaps the second mapping, if there is one. Does not change *memory, so n_pieces stays known. */
void flat_memory_unmap(const struct flat_memory *memory);

#endif
