/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Places descriptors at their saved numbers, and rings at their saved addresses. placement_reserve
 * occupies the numbers first, so that no descriptor of this library takes them meanwhile. Functions
 * return 0 or a negative errno value. For checkpoint_restore.c.
 */
#ifndef URXE_VERBS_CHECKPOINT_PLACEMENT_H
#define URXE_VERBS_CHECKPOINT_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct image;
struct rebuilt;

/* What was placed so far. placement_reserve initialises it, also if it returns an error. */
struct placement {
	const struct image *image;
	uint32_t n_reserved, n_mapped;
	bool *was_reserved; /* for each mapping: *reserved of ring_mapping_place */
};

/* Occupies the descriptors' numbers. -EEXIST: a number is in use. */
int placement_reserve(struct placement *p, const struct image *image);
/* Maps the rings. -EEXIST: an address is in use. */
int placement_map(struct placement *p, const struct rebuilt *r);
/*
 * Replaces the reserved descriptors by duplicates of those in *r, with the saved flags. Contexts
 * and channels in *r are open already; this function opens the rdma_cm devices. After success it
 * has closed the descriptors in *r. -EBADMSG: a context or an rdma_cm device has no saved number.
 */
int placement_install(const struct placement *p, struct rebuilt *r);
/* Undoes what placement_reserve, placement_map and placement_install have done, also after an
 * error of one of them. */
void placement_undo(struct placement *p);
/* Frees the lists of *p; the placed descriptors and rings stay. */
void placement_done(struct placement *p);

#endif
