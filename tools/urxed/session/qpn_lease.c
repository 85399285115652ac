/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/qpn_lease.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static bool is_taken(const struct lease_table *t, uint32_t block)
{
	return block == 0 || block == LEASE_BLOCKS - 1 || t->owner[block];
}

/* Whether a process that has not claimed it may lease the block. */
static bool is_free(const struct lease_table *t, uint32_t block)
{
	return !is_taken(t, block) && !(t->claimable && t->claimable[block]) &&
	       !(t->added && t->added->in_block[block]);
}

/*
 * Leases blocks in rotation: a released block is reused as late as possible, when packets from its
 * former owner's peers have died out.
 */
int lease_take(struct lease_table *t, void *owner, uint32_t *qpn)
{
	uint32_t block = t->last, tries;

	for (tries = 0; tries < LEASE_BLOCKS; tries++) {
		block = (block + 1) % LEASE_BLOCKS;
		if (!is_free(t, block))
			continue;
		t->owner[block] = owner;
		t->last = block;
		*qpn = block << LEASE_SHIFT;
		return 0;
	}
	return -ENOSPC;
}

int lease_take_block(struct lease_table *t, void *owner, uint32_t qpn)
{
	uint32_t block = lease_block(qpn);

	if (is_taken(t, block))
		return -EBUSY;
	t->owner[block] = owner;
	return 0;
}

int lease_check_demand(const struct lease_table *t, uint32_t qpn)
{
	uint32_t block = lease_block(qpn);

	if (qpn != block << LEASE_SHIFT || block == 0 || block == LEASE_BLOCKS - 1)
		return -EINVAL;
	return is_free(t, block) ? 0 : -EEXIST;
}

bool lease_may_add(const struct lease_table *t, const void *owner, uint32_t qpn)
{
	const void *holder = t->owner[lease_block(qpn)];

	return holder ? holder == owner : !t->claimable || !t->claimable[lease_block(qpn)];
}

void lease_avoid_hca(struct lease_table *t)
{
	if (t->last < LEASE_BLOCKS / 2 - 1)
		t->last = LEASE_BLOCKS / 2 - 1;
}

void lease_drop(struct lease_table *t, const void *owner)
{
	uint32_t block;

	for (block = 0; block < LEASE_BLOCKS; block++)
		if (t->owner[block] == owner)
			t->owner[block] = NULL;
}
