/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads the mappings of this process from /proc/self/maps. For uaccess.c, mmu_notifier.c,
 * map_calls.c and ring_mapping.c. */
#ifndef URXE_VERBS_MEMORY_PROC_MAPS_H
#define URXE_VERBS_MEMORY_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "process/text_lines.h"

struct mapping {
	uint64_t start, end;
	bool readable, writable, shared;
	uint64_t
		offset; /* in the file, whose device and inode follow; all 0 for anonymous memory */
	unsigned int major, minor;
	uint64_t inode;
};

/* Opens the list. False: it cannot be opened, and counts as empty. Close it with
 * text_lines_close. */
bool proc_maps_open(struct text_lines *maps);
/* Reads the next line; false at the end. */
bool proc_maps_next(struct text_lines *maps, struct mapping *m);

/*
 * Length of the contiguous mapping of a file, from its first byte, that begins at start: the part
 * of a segment that shmdt(2) unmaps. 0: no such mapping.
 */
uint64_t proc_maps_file_length(uint64_t start);

#endif
