/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of a region as one range of addresses, as libibverbs registers it. A region of a
 * virtual machine is a list of pages of the machine's memory, which this process has mapped from a
 * file. Pages that are not side by side get a second mapping in which they are.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_FLAT_MEMORY_H
#define URXE_VERBS_HCA_OBJECTS_FLAT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct urxe_mr_attr;

/* Pieces of all regions of a process. Each is a mapping, and Linux permits a process 65,530 by
 * default (vm.max_map_count). */
#define FLAT_PIECES_MAX 32768u

struct flat_memory {
	void *addr;        /* of the region's first byte */
	void *mapping;     /* NULL: the memory itself is one range */
	size_t mapped;     /* bytes of the mapping */
	uint32_t n_pieces; /* of the mapping */
};

/*
 * Each extent lies in one mapping. `room`: pieces that the mapping may have. -EOPNOTSUPP: the
 * region has a hole, its pieces are no whole pages of memory that can be mapped twice, or there are
 * too many of them; or Linux refuses the mapping.
 */
int flat_memory_open(struct flat_memory *memory, const struct urxe_mr_attr *attr, uint32_t room);
/* Leaves n_pieces as it is. */
void flat_memory_unmap(const struct flat_memory *memory);

#endif
