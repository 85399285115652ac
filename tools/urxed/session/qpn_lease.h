/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QPN leases: which process owns which block of the 24-bit QPN space.
 *
 * Blocks let the switch find the process of a destination QPN by one table access. The daemon keeps
 * the first block, which has QP0 and QP1, and the last one, which has the multicast QPN 0xffffff
 * (IBA 3.5.10, 10.5.1). A process gets one block when it attaches and more when it needs them.
 */
#ifndef URXE_URXED_SESSION_QPN_LEASE_H
#define URXE_URXED_SESSION_QPN_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/attach.h>

#define LEASE_SHIFT  VNIC_LEASE_SHIFT
#define LEASE_QPNS   VNIC_LEASE_QPNS
#define LEASE_BLOCKS (1u << (24 - LEASE_SHIFT))

struct lease_table {
	void *owner[LEASE_BLOCKS];
	const bool *claimable; /* blocks that only lease_claim may lease; NULL = none */
	uint32_t last;         /* block leased most recently */
};

/* Leases any block to owner; *qpn is its first QPN. -ENOSPC: all blocks are leased. */
int lease_take(struct lease_table *t, void *owner, uint32_t *qpn);
/* Leases the block that begins with qpn. -EBUSY: the block is leased, or the daemon's own. */
int lease_claim(struct lease_table *t, void *owner, uint32_t qpn);
/* Ends all leases of owner. */
void lease_drop(struct lease_table *t, const void *owner);

/* The block that contains qpn (24 bits). */
static inline uint32_t lease_block(uint32_t qpn)
{
	return qpn >> LEASE_SHIFT & (LEASE_BLOCKS - 1);
}

/* Owner of qpn (24 bits); NULL = not leased. */
static inline void *lease_owner(const struct lease_table *t, uint32_t qpn)
{
	return t->owner[lease_block(qpn)];
}

#endif
