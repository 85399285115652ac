/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/qpn_lease.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static bool is_taken(const struct lease_table *t, uint32_t block)
{
	return block == 0 || block == LEASE_BLOCKS - 1 || t->owner[block];
}

/* Whether a process may lease the block without a claim to it. */
static bool is_free(const struct lease_table *t, uint32_t block)
{
	return !is_taken(t, block) && !(t->claimable && t->claimable[block]) &&
	       !(t->added && t->added->in_block[block]);
}

bool lease_is_quiet(const struct lease_table *t, uint32_t block, uid_t user, uint64_t now)
{
	const struct lease_past *past = t->past ? &t->past[block] : NULL;

	return past && past->user && past->user != 1ull + user && past->ended_at &&
	       now < past->ended_at + LEASE_QUIET_NS;
}

/*
 * Returns the next free block in rotation, so that a released block is reused as late as possible,
 * when packets from its former owner's peers have died out. By attaching again and again, a process
 * could soon reach any block. So quiet blocks of other users (lease_is_quiet) come last, beginning
 * with the one that has been quiet longest. After lease_avoid_hca, blocks of the lower half come
 * between the other blocks and the quiet ones. 0: no block is free.
 */
static uint32_t find_block(const struct lease_table *t, uid_t user, uint64_t now)
{
	uint32_t block = t->last, low = 0, oldest = 0, tries;

	for (tries = 0; tries < LEASE_BLOCKS; tries++) {
		block = (block + 1) % LEASE_BLOCKS;
		if (!is_free(t, block))
			continue;
		if (!lease_is_quiet(t, block, user, now)) {
			if (!t->avoids_hca || block >= LEASE_BLOCKS / 2)
				return block;
			low = low ? low : block;
		} else if (!oldest || t->past[block].ended_at < t->past[oldest].ended_at) {
			oldest = block;
		}
	}
	return low ? low : oldest;
}

int lease_take(struct lease_table *t, void *owner, uid_t user, uint64_t now, uint32_t *qpn)
{
	uint32_t block = find_block(t, user, now);

	if (!block)
		return -ENOSPC;
	t->owner[block] = owner;
	t->last = block;
	*qpn = block << LEASE_SHIFT;
	return 0;
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
	t->avoids_hca = true;
}

void lease_drop(struct lease_table *t, const void *owner)
{
	uint32_t block;

	for (block = 0; block < LEASE_BLOCKS; block++)
		if (t->owner[block] == owner)
			t->owner[block] = NULL;
}
