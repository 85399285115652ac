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
	bool segment;    /* of System V shared memory */
	uint64_t offset; /* in the file that device and inode name; all 0: anonymous memory */
	unsigned int major, minor;
	uint64_t inode;
};

/* Opens the list of mappings. False: it cannot be opened, and counts as empty. Close it with
 * text_lines_close. */
bool proc_maps_open(struct text_lines *maps);
/* Reads the next mapping into *m. False: the end of the list, or a line that cannot be parsed. */
bool proc_maps_next(struct text_lines *maps, struct mapping *m);

/*
 * Reads into *m the next mapping that shmdt(start) unmaps: what is still mapped of the System V
 * segment that the program attached at start. Before the first call *m is all 0; later it is the
 * result of the call before. False: there is no further one.
 */
bool proc_maps_next_attached(struct text_lines *maps, uint64_t start, struct mapping *m);

#endif
