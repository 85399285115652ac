/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue pair numbers that the daemon has leased to this process, and the QPs that use them or
 * numbers that an HCA has chosen.
 * liburxe holds the lock of its adapter during each call.
 */
#ifndef URXE_VERBS_SESSION_QPN_LEASE_H
#define URXE_VERBS_SESSION_QPN_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/attach.h>

#define LEASES_QPS (VNIC_LEASES_MAX * VNIC_LEASE_QPNS) /* queue pairs that a process may have */

struct lease_block {
	uint32_t qpn_first;
	bool foreign;               /* not leased: an HCA has chosen numbers in it */
	void *qps[VNIC_LEASE_QPNS]; /* NULL: the number is free */
};

/* All 0 at first. */
struct leases {
	struct lease_block *blocks[VNIC_LEASES_MAX]; /* in the order in which they came */
	struct lease_block *by_qpn[1u << (24 - VNIC_LEASE_SHIFT)];
	uint32_t n;       /* blocks */
	uint32_t used;    /* leased numbers */
	uint32_t foreign; /* QPs with other numbers */
	uint32_t next;    /* where the search for a free number continues */
};

/* Takes ownership of the block, one of at most VNIC_LEASES_MAX. */
void leases_add(struct leases *leases, struct lease_block *block);
/* Frees all blocks. */
void leases_clear(struct leases *leases);

/*
 * A free number; 0: all are in use. Numbers are used in turn, so that a freed number is reused as
 * late as possible, when packets to its former QP have died out.
 */
uint32_t leases_find_free(struct leases *leases);
/* Makes room for a QP with that number, which need not be leased. 0 or -ENOMEM. */
int leases_reserve(struct leases *leases, uint32_t qpn);
/* Assigns the number, leased or reserved, to a QP; NULL frees it. */
void leases_assign(struct leases *leases, uint32_t qpn, void *qp);
/* The next QP at or behind *at, which starts at 0; NULL at the end. First those with leased
 * numbers. */
void *leases_next(const struct leases *leases, uint32_t *at);

/* NULL: no QP has the number. */
void *leases_find(const struct leases *leases, uint32_t qpn);

static inline bool leases_full(const struct leases *leases)
{
	return leases->used == leases->n * VNIC_LEASE_QPNS;
}

#endif
