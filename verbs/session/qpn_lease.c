/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "session/qpn_lease.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A QPN from the program or a peer may have more than 24 bits. */
static uint32_t block_of(uint32_t qpn)
{
	return (qpn & 0xffffff) >> VNIC_LEASE_SHIFT;
}

void leases_add(struct leases *leases, struct lease_block *block)
{
	leases->blocks[leases->n++] = block;
	leases->by_qpn[block_of(block->qpn_first)] = block;
}

void leases_clear(struct leases *leases)
{
	for (uint32_t i = 0; i < leases->n; i++)
		free(leases->blocks[i]);
	memset(leases, 0, sizeof(*leases));
}

static void **qp_entry(const struct leases *leases, uint32_t at)
{
	return &leases->blocks[at / VNIC_LEASE_QPNS]->qps[at % VNIC_LEASE_QPNS];
}

uint32_t leases_find_free(struct leases *leases)
{
	uint32_t all = leases->n * VNIC_LEASE_QPNS, at;

	if (leases_full(leases))
		return 0;
	do {
		at = leases->next;
		leases->next = (at + 1) % all;
	} while (*qp_entry(leases, at));
	return leases->blocks[at / VNIC_LEASE_QPNS]->qpn_first + at % VNIC_LEASE_QPNS;
}

void leases_assign(struct leases *leases, uint32_t qpn, void *qp)
{
	void **entry = &leases->by_qpn[block_of(qpn)]->qps[qpn % VNIC_LEASE_QPNS];

	leases->used += (qp != NULL) - (*entry != NULL);
	*entry = qp;
}

void *leases_next(const struct leases *leases, uint32_t *at)
{
	while (*at < leases->n * VNIC_LEASE_QPNS) {
		void *qp = *qp_entry(leases, (*at)++);

		if (qp)
			return qp;
	}
	return NULL;
}
