/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which process owns which queue pair numbers.
 *
 * The 24-bit space is leased in blocks, so that the switch finds the process
 * behind a destination QPN with one look into a table. The first block holds QP0
 * and QP1 and the last one the multicast QPN 0xffffff (IBA 3.5.10, 10.5.1); both
 * stay with the daemon. A process gets one block at first, and others as it needs them.
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
	const bool *awaited; /* blocks that only lease_claim leases; NULL = there are none */
	uint32_t last;       /* leased most recently */
};

/* Leases a block to owner; *qpn is its first number. -ENOSPC: all are out. */
int lease_take(struct lease_table *t, void *owner, uint32_t *qpn);
/* Leases the block that begins with qpn. -EBUSY: it is leased, or the daemon's. */
int lease_claim(struct lease_table *t, void *owner, uint32_t qpn);
/* Takes back all that owner has. */
void lease_drop(struct lease_table *t, const void *owner);

/* The block that qpn (24 bits) lies in. */
static inline uint32_t lease_block(uint32_t qpn)
{
	return qpn >> LEASE_SHIFT & (LEASE_BLOCKS - 1);
}

/* NULL where nobody leased qpn (24 bits). */
static inline void *lease_owner(const struct lease_table *t, uint32_t qpn)
{
	return t->owner[lease_block(qpn)];
}

#endif
