/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lease.h"

#include <errno.h>
#include <stddef.h>

/*
 * Blocks go round: a block that was given back is leased again as late as
 * possible, when packets of its former owner's peers have died out.
 */
int lease_take(struct lease_table *t, void *owner, uint32_t *qpn)
{
	uint32_t block = t->last, tries;

	for (tries = 0; tries < LEASE_BLOCKS; tries++) {
		block = (block + 1) % LEASE_BLOCKS;
		if (block == 0 || block == LEASE_BLOCKS - 1 || t->owner[block])
			continue;
		t->owner[block] = owner;
		t->last = block;
		*qpn = block << LEASE_SHIFT;
		return 0;
	}
	return -ENOSPC;
}

void lease_drop(struct lease_table *t, const void *owner)
{
	uint32_t block;

	for (block = 0; block < LEASE_BLOCKS; block++)
		if (t->owner[block] == owner)
			t->owner[block] = NULL;
}
