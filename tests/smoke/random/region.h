/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of a side, its regions and windows, and scatter/gather lists in them. */
#ifndef URXE_SMOKE_RANDOM_REGION_H
#define URXE_SMOKE_RANDOM_REGION_H

#include "side.h"

#define REGION_ALL_RIGHTS                                                            \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
/* The longest message with a GRH. Each region of an error-free sequence has at least this. */
#define REGION_LEAST 200040

/* Messages come from SOURCES, and go to DESTINATIONS. */
enum half { SOURCES, DESTINATIONS };

/* What is wrong with a request. */
enum damage {
	NO_RIGHT, /* a region without the right */
	OTHER_PD,
	TOO_SHORT, /* a region that is shorter than the message */
	WRONG_KEY,
	WRONG_ADDRESS, /* one byte before the region, or behind it */
	UNALIGNED,     /* an atomic's address */
	WRONG_SIZE,    /* an atomic's length */
	LONG_INLINE,   /* more inline data than the queue pair permits */
	UNDAMAGED,
};

/* What a region must have for a request. */
struct need {
	enum half half;
	int pd, right; /* a flag of enum ibv_access_flags, or 0 */
	uint32_t length;
	enum damage damage;
};

/* After a failure or a reset of the queue pair no window is bound to it. */
void region_unbind_windows(struct side *side, int qp);
/* A request has invalidated the window with that rkey, if it was bound. */
void region_invalidate_window(struct side *side, uint32_t rkey);
void region_map_memory(struct side *side);
/* Writes the pattern of the beginning to all memory. */
void region_fill_memory(struct side *side);
uint64_t region_hash_memory(const struct side *side);
/* Registers the first regions. Exits on failure. */
void region_register_all(struct side *side);
/* A drawn region that fits; NULL: none. */
const struct region *region_find(const struct view *view, const struct need *need);
/* Fills at most three segments, with need->length bytes in all; returns their number. */
int region_segments(struct side *side, struct ibv_sge *sges, const struct need *need);

/* Operations. */
void region_register(struct side *side);
void region_window(struct side *side);

#endif
