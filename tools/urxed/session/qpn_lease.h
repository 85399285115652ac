/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QPN leases: which process owns which block of the 24-bit QPN space.
 *
 * Because leases are blocks, the switch finds the process of a destination QPN by one table access.
 * The daemon keeps the first block, which has QP0 and QP1, and the last one, which has the
 * multicast QPN 0xffffff (IBA 3.5.10, 10.5.1). A process gets one block when it attaches, and more
 * when it needs them.
 *
 * Processes also add single QPNs, for instance those that an HCA has chosen: in their own blocks,
 * or in blocks that no process leases (qpn_table.h). No QPN has two owners, because lease_take
 * skips a block with an added QPN.
 */
#ifndef URXE_URXED_SESSION_QPN_LEASE_H
#define URXE_URXED_SESSION_QPN_LEASE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <vnic/attach_protocol.h>

#include "urxed/session/qpn_table.h"

#define LEASE_SHIFT  VNIC_LEASE_SHIFT
#define LEASE_QPNS   VNIC_LEASE_QPNS
#define LEASE_BLOCKS (1u << (24 - LEASE_SHIFT))

/* Time for which the peers of an ended process may still send to its QPNs, ns. */
#define LEASE_QUIET_NS (600 * UINT64_C(1000000000))

/* The last lease of a block; times are of CLOCK_MONOTONIC in ns. */
struct lease_past {
	uint64_t user; /* 1 + the UID of the process; 0 = no process has had the block */
	uint64_t began_at;
	uint64_t ended_at; /* 0 = the lease has not ended */
};

struct lease_table {
	void *owner[LEASE_BLOCKS];
	const bool *claimable; /* blocks that only lease_take_block may lease; NULL = none */
	const struct lease_past *past; /* the last lease of each block; NULL = unknown */
	uint32_t last;                 /* the block that lease_take leased most recently */
	struct qpn_table *added;       /* QPNs that processes have added; NULL = none */
	bool avoids_hca;               /* lease_avoid_hca was called */
};

/*
 * Leases a block to owner that is neither leased nor claimable, and has no added QPN. Takes blocks
 * that are quiet after a process of another user (lease_is_quiet) only if there is no other.
 * Returns 0 with the first QPN of the block in *qpn, or -ENOSPC if there is no such block.
 */
int lease_take(struct lease_table *t, void *owner, uid_t user, uint64_t now, uint32_t *qpn);
/* Whether a process of another user has had the block, and has ended less than LEASE_QUIET_NS ago,
 * so that its peers may still send to the block's QPNs. */
bool lease_is_quiet(const struct lease_table *t, uint32_t block, uid_t user, uint64_t now);
/*
 * Leases the block that begins with qpn to owner. The caller has checked that owner may claim the
 * block, or has called lease_check_demand. Returns 0, or -EBUSY if the block is leased or the
 * daemon's own.
 */
int lease_take_block(struct lease_table *t, void *owner, uint32_t qpn);
/*
 * Returns 0 if a process without a claim may lease the block that begins with qpn; -EEXIST if the
 * block is leased, may be claimed, or has an added QPN; -EINVAL if no block for processes begins
 * there.
 */
int lease_check_demand(const struct lease_table *t, uint32_t qpn);
/* Ends all leases of owner. */
void lease_drop(struct lease_table *t, const void *owner);

/* Returns the block that contains qpn (24 bits). */
static inline uint32_t lease_block(uint32_t qpn)
{
	return qpn >> LEASE_SHIFT & (LEASE_BLOCKS - 1);
}

/* Returns the owner of qpn (24 bits); NULL = neither leased nor added, or only reserved
 * (qpn_table.h). */
static inline void *lease_owner(const struct lease_table *t, uint32_t qpn)
{
	void *owner = t->owner[lease_block(qpn)];

	return owner || !t->added ? owner : qpn_table_owner(t->added, qpn);
}

/* Whether `owner` may add qpn (qpn_table.h): the QPN must not be in a block that another owner has
 * leased, nor in one that a process may claim. */
bool lease_may_add(const struct lease_table *t, const void *owner, uint32_t qpn);

/*
 * Call it if an HCA backs urxe0, because HCAs choose QPNs from the lower half. lease_take then
 * takes a block of the lower half only if the upper half has none free, or only quiet ones
 * (lease_is_quiet).
 */
void lease_avoid_hca(struct lease_table *t);

#endif
