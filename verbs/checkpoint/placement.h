/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors at the numbers, and rings at the addresses, that the program knows. Numbers are
 * reserved first, so that no descriptor of this library takes them meanwhile. For
 * checkpoint_restore.c.
 */
#ifndef URXE_VERBS_CHECKPOINT_PLACEMENT_H
#define URXE_VERBS_CHECKPOINT_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct image;
struct rebuilt;

/* What was placed so far. All 0 before placement_reserve. */
struct placement {
	const struct image *image;
	uint32_t n_reserved, n_mapped;
	bool *was_reserved; /* for each mapping: its addresses were reserved before */
};

/* Occupies the descriptors' numbers. -EEXIST: a number is in use. */
int placement_reserve(struct placement *p, const struct image *image);
/* Maps the rings. -EEXIST: an address is in use. */
int placement_map(struct placement *p, const struct rebuilt *r);
/* Puts descriptors at their numbers, and opens rdma_cm files. */
int placement_install(const struct placement *p, struct rebuilt *r);
/* Undoes all three. */
void placement_undo(struct placement *p);
/* Frees the lists of *p; the placed descriptors and rings stay. */
void placement_done(struct placement *p);

#endif
