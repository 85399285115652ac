/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue pair numbers that the daemon has leased to this process, and the QPs that use them or
 * other numbers, which an HCA has chosen, or which a machine has brought from another host. In
 * liburxe, callers hold adapter.lock.
 */
#ifndef URXE_VERBS_SESSION_QPN_LEASE_H
#define URXE_VERBS_SESSION_QPN_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/attach_protocol.h>

#define LEASES_QPS (VNIC_LEASES_MAX * VNIC_LEASE_QPNS) /* queue pairs that a process may have */

struct lease_block {
	uint32_t qpn_first;
	uint32_t n_qps;
	bool unleased;              /* its QPs have numbers of an HCA or of another host */
	void *qps[VNIC_LEASE_QPNS]; /* NULL: the number is free */
};

/* All 0 at first. */
struct leases {
	struct lease_block *blocks[VNIC_LEASES_MAX]; /* leased blocks, in the order of the leases */
	struct lease_block *by_qpn[1u << (24 - VNIC_LEASE_SHIFT)];
	uint32_t n;        /* number of leased blocks */
	uint32_t used;     /* number of QPs with leased numbers */
	uint32_t unleased; /* number of QPs with numbers that are not leased */
	uint32_t next;     /* where the search for a free number continues */
};

/*
 * Adds a leased block, which is from calloc with qpn_first set, and takes its ownership. The caller
 * has checked that leases->n is below VNIC_LEASES_MAX.
 */
void leases_add(struct leases *leases, struct lease_block *block);
/* Adds the leased block of QPNs from qpn_first on, as leases_add(). 0 or -ENOMEM. */
int leases_add_new(struct leases *leases, uint32_t qpn_first);
/* Frees all blocks, leased or not; *leases is all 0 then. */
void leases_clear(struct leases *leases);

/*
 * Returns a leased number that no QP has; 0: all are in use. It stays free until leases_assign.
 * Numbers are used in turn, so that a freed number is reused as late as possible. By then no
 * packets to its former QP are under way any more.
 */
uint32_t leases_find_free(struct leases *leases);
/* If the number is not leased, allocates the record of its block, so that leases_assign() needs no
 * memory. The caller assigns the number before it releases its lock: else the end of another QP of
 * the block may free the record. 0 or -ENOMEM. */
int leases_reserve(struct leases *leases, uint32_t qpn);
/* Assigns the number, leased or reserved, to a QP; NULL frees it, also if no QP had it. */
void leases_assign(struct leases *leases, uint32_t qpn, void *qp);
/* Iterates over the QPs, those with leased numbers first: returns the next QP, and advances *at,
 * which starts at 0. NULL at the end. */
void *leases_next(const struct leases *leases, uint32_t *at);

/* The QP that has the number; NULL: there is none. */
void *leases_find(const struct leases *leases, uint32_t qpn);

static inline bool leases_full(const struct leases *leases)
{
	return leases->used == leases->n * VNIC_LEASE_QPNS;
}

#endif
