/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "session/qpn_lease.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The block of the QPN, as an index of leases.by_qpn. In range for any value: a QPN from the
 * program or a peer may have more than 24 bits. */
static uint32_t block_of(uint32_t qpn)
{
	return (qpn & 0xffffff) >> VNIC_LEASE_SHIFT;
}

#define BLOCKS (1u << (24 - VNIC_LEASE_SHIFT))

/* If QPs have unleased numbers in this block, moves them into `block`, which the process has leased
 * now. They keep their numbers. */
static void replace_unleased(struct leases *leases, struct lease_block *block)
{
	struct lease_block *unleased = leases->by_qpn[block_of(block->qpn_first)];

	if (!unleased || !unleased->unleased)
		return;
	memcpy(block->qps, unleased->qps, sizeof(block->qps));
	block->n_qps = unleased->n_qps;
	leases->used += unleased->n_qps;
	leases->unleased -= unleased->n_qps;
	free(unleased);
}

void leases_add(struct leases *leases, struct lease_block *block)
{
	replace_unleased(leases, block);
	leases->blocks[leases->n++] = block;
	leases->by_qpn[block_of(block->qpn_first)] = block;
}

int leases_add_new(struct leases *leases, uint32_t qpn_first)
{
	struct lease_block *block = calloc(1, sizeof(*block));

	if (!block)
		return -ENOMEM;
	block->qpn_first = qpn_first;
	leases_add(leases, block);
	return 0;
}

void leases_clear(struct leases *leases)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		free(leases->by_qpn[i]);
	memset(leases, 0, sizeof(*leases));
}

int leases_reserve(struct leases *leases, uint32_t qpn)
{
	struct lease_block **block = &leases->by_qpn[block_of(qpn)];

	if (*block)
		return 0;
	*block = calloc(1, sizeof(**block));
	if (!*block)
		return -ENOMEM;
	(*block)->qpn_first = block_of(qpn) << VNIC_LEASE_SHIFT;
	(*block)->unleased = true;
	return 0;
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
	struct lease_block **block = &leases->by_qpn[block_of(qpn)];
	void **entry = &(*block)->qps[qpn % VNIC_LEASE_QPNS];
	const uint32_t more = (qp != NULL) - (*entry != NULL);

	*entry = qp;
	(*block)->n_qps += more;
	*((*block)->unleased ? &leases->unleased : &leases->used) += more;
	if ((*block)->unleased && !(*block)->n_qps) {
		free(*block);
		*block = NULL;
	}
}

void *leases_find(const struct leases *leases, uint32_t qpn)
{
	const struct lease_block *block = leases->by_qpn[block_of(qpn)];

	return block ? block->qps[qpn % VNIC_LEASE_QPNS] : NULL;
}

/* Returns the block's next QP from position *at on, and sets *at behind it. Positions count the
 * numbers of all blocks from 0. NULL: no further QP, and *at is where the next block begins. */
static void *next_in_block(const struct lease_block *block, uint32_t *at)
{
	const uint32_t end = (*at / VNIC_LEASE_QPNS + 1) * VNIC_LEASE_QPNS;

	while (block->n_qps && *at < end) {
		void *qp = block->qps[(*at)++ % VNIC_LEASE_QPNS];

		if (qp)
			return qp;
	}
	*at = end;
	return NULL;
}

static void *next_leased(const struct leases *leases, uint32_t *at)
{
	void *qp = NULL;

	while (!qp && *at < leases->n * VNIC_LEASE_QPNS)
		qp = next_in_block(leases->blocks[*at / VNIC_LEASE_QPNS], at);
	return qp;
}

/* Returns the next QP whose number is not leased; NULL: no further one. *at counts all QPNs from
 * 0. */
static void *next_unleased(const struct leases *leases, uint32_t *at)
{
	static const struct lease_block none;
	void *qp = NULL;

	while (!qp && leases->unleased && *at < BLOCKS * VNIC_LEASE_QPNS) {
		const struct lease_block *block = leases->by_qpn[*at / VNIC_LEASE_QPNS];

		qp = next_in_block(block && block->unleased ? block : &none, at);
	}
	return qp;
}

void *leases_next(const struct leases *leases, uint32_t *at)
{
	uint32_t leased = leases->n * VNIC_LEASE_QPNS, unleased;
	void *qp = next_leased(leases, at);

	if (qp)
		return qp;
	unleased = *at - leased;
	qp = next_unleased(leases, &unleased);
	*at = leased + unleased;
	return qp;
}
