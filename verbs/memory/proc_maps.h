/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The mappings of this process, as /proc/self/maps has them. */
#ifndef URXE_VERBS_MEMORY_PROC_MAPS_H
#define URXE_VERBS_MEMORY_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/proc_lines.h"

struct mapping {
	uint64_t start, end;
	bool readable, writable;
	uint64_t offset; /* in the file, whose numbers follow; all 0 for other memory */
	unsigned int major, minor;
	uint64_t inode;
};

/* False: they cannot be read, and there are none; to be closed by lines_close. */
bool maps_open(struct lines *maps);
/* Reads the next line; false at the end. */
bool maps_next(struct lines *maps, struct mapping *m);

/* Bytes from start on that map a file from its first byte on, in one piece: what shmdt(2) unmaps of
 * a segment; 0 where nothing does. */
uint64_t maps_of_file(uint64_t start);

#endif
