/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/direct_table.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "memory/mr.h"
#include "objects/device.h"
#include "objects/references.h"
#include "requester/direct.h"

static_assert(sizeof(struct urxe_direct_grant) == 64, "one cache line");
static_assert(sizeof(struct urxe_direct_qp) == 32, "two to a cache line");

/* --- Entries of both kinds begin with their version. */

struct urxe_direct_grant *direct_grant_place(struct urxe_direct_table *table, uint32_t key)
{
	/* Keys are consecutive numbers, except for their low 8 bits. */
	return &table->grants[(key >> 8) % URXE_DIRECT_GRANTS];
}

/* A QPN has 24 bits. */
static uint8_t *chunk_of(struct urxe_direct_table *table, uint32_t qpn)
{
	return &table->chunks[qpn / URXE_DIRECT_CHUNK % sizeof(table->chunks)];
}

struct urxe_direct_qp *direct_qp_place(struct urxe_direct_table *table, uint32_t qpn)
{
	uint32_t chunk = __atomic_load_n(chunk_of(table, qpn), __ATOMIC_RELAXED);

	if (!chunk || chunk > URXE_DIRECT_CHUNKS)
		return NULL;
	return &table->qps[chunk - 1][qpn % URXE_DIRECT_CHUNK];
}

/* Replaces everything behind the version by the same part of `entry`. */
static void write_entry(void *place, const void *entry, size_t size)
{
	_Atomic uint32_t *version = place;
	uint32_t before = atomic_load_explicit(version, memory_order_relaxed);

	atomic_store_explicit(version, before + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy((uint8_t *)place + sizeof(*version), (const uint8_t *)entry + sizeof(*version),
	       size - sizeof(*version));
	atomic_store_explicit(version, before + 2, memory_order_release);
}

bool direct_read_entry(const void *place, void *entry, size_t size)
{
	const _Atomic uint32_t *version = place;
	uint32_t before = atomic_load_explicit(version, memory_order_acquire);

	memcpy(entry, place, size);
	atomic_thread_fence(memory_order_acquire);
	*(uint32_t *)entry = before;
	return !(before & 1) && atomic_load_explicit(version, memory_order_relaxed) == before;
}

/* --- Publishing. */

int direct_init(struct urxe_dev *dev)
{
	struct urxe_direct_table *table = dev->attr.direct_table;

	if (!table)
		return 0;
	for (uint32_t i = 0; i < sizeof(table->chunks); i++)
		if (table->chunks[i] > dev->direct_chunks)
			dev->direct_chunks = table->chunks[i];
	dev->direct = calloc(1, sizeof(*dev->direct));
	return dev->direct ? 0 : -ENOMEM;
}

void direct_free(struct urxe_dev *dev)
{
	free(dev->direct);
	dev->direct = NULL;
}

static uint32_t units_of(uint32_t n_pieces)
{
	return (n_pieces + URXE_DIRECT_UNIT - 1) / URXE_DIRECT_UNIT;
}

/* The first unit of a free run of n units; UNITS: there is none. */
static uint32_t find_run(const struct direct *direct, uint32_t n)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < DIRECT_UNITS; i++) {
		run = direct->taken[i] ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return DIRECT_UNITS;
}

/* Gives the grant entries of the list of pieces. False: there are not so many. */
static bool take_pieces(struct urxe_dev *dev, struct urxe_direct_grant *grant,
			const struct mr_piece *pieces)
{
	const uint32_t n = units_of(grant->n_pieces);
	uint32_t at = grant->n_pieces > URXE_DIRECT_GRANT_PIECES ? DIRECT_UNITS
								 : find_run(dev->direct, n);
	struct urxe_direct_piece *to;

	if (at == DIRECT_UNITS)
		return false;
	memset(&dev->direct->taken[at], 1, n);
	grant->pieces = at * URXE_DIRECT_UNIT;
	/* After the new epoch of the withdrawal of the pieces that were there before. */
	atomic_thread_fence(memory_order_release);
	to = &dev->attr.direct_table->pieces[grant->pieces];
	for (uint32_t i = 0; i < grant->n_pieces; i++) {
		__atomic_store_n(&to[i].offset, pieces[i].offset, __ATOMIC_RELAXED);
		__atomic_store_n(&to[i].addr, (uintptr_t)pieces[i].addr, __ATOMIC_RELAXED);
	}
	return true;
}

static void give_back_pieces(struct urxe_dev *dev, const struct urxe_direct_grant *grant)
{
	if (grant->n_pieces > 1)
		memset(&dev->direct->taken[grant->pieces / URXE_DIRECT_UNIT], 0,
		       units_of(grant->n_pieces));
}

void direct_publish_grant(struct urxe_dev *dev, const struct urxe_direct_grant *grant,
			  const struct mr_piece *pieces)
{
	struct urxe_direct_grant *place, now = *grant;

	if (!dev->attr.direct_table)
		return;
	place = direct_grant_place(dev->attr.direct_table, grant->key);
	if (!place->key && (now.n_pieces == 1 || take_pieces(dev, &now, pieces)))
		write_entry(place, &now, sizeof(now));
}

/*
 * A requester that reads the table from now on finds no rights. A requester that has read the
 * table, but has not begun to copy, finds another epoch. `withdrawn` finds a requester that copies.
 */
static void withdraw_entry(struct urxe_dev *dev, void *place, const void *none, size_t size)
{
	struct urxe_direct_table *table = dev->attr.direct_table;

	write_entry(place, none, size);
	__atomic_fetch_add(&table->state.epoch, 1, __ATOMIC_SEQ_CST);
	dev->attr.direct->withdrawn(dev->attr.direct_ctx);
}

void direct_withdraw(struct urxe_dev *dev, uint32_t key)
{
	static const struct urxe_direct_grant none;
	struct urxe_direct_grant *place, before;

	if (!dev->attr.direct_table)
		return;
	place = direct_grant_place(dev->attr.direct_table, key);
	if (place->key != key)
		return;
	/* Only this device writes to the table. */
	before = *place;
	withdraw_entry(dev, place, &none, sizeof(none));
	give_back_pieces(dev, &before);
}

void urxe_direct_withdraw(struct urxe_dev *dev)
{
	struct urxe_direct_table *table = dev->attr.direct_table;

	if (!table)
		return;
	for (uint32_t i = 0; i < URXE_DIRECT_GRANTS; i++)
		if (table->grants[i].key)
			direct_withdraw(dev, table->grants[i].key);
	for (uint32_t i = 0; i < dev->direct_chunks; i++)
		for (uint32_t j = 0; j < URXE_DIRECT_CHUNK; j++)
			if (table->qps[i][j].qpn)
				direct_withdraw_qp(dev, table->qps[i][j].qpn);
	end_all_references(dev);
}

bool direct_copies_ended(struct urxe_dev *dev)
{
	return !dev->attr.direct_table || dev->attr.direct->settled(dev->attr.direct_ctx);
}

void direct_withdraw_qp(struct urxe_dev *dev, uint32_t qpn)
{
	static const struct urxe_direct_qp none;
	struct urxe_direct_qp *place;

	if (!dev->attr.direct_table)
		return;
	place = direct_qp_place(dev->attr.direct_table, qpn);
	if (place && place->qpn == qpn)
		withdraw_entry(dev, place, &none, sizeof(none));
}

/* Gives the QPN's block a chunk if it has none yet. NULL: all chunks are taken. */
static struct urxe_direct_qp *take_qp_place(struct urxe_dev *dev, uint32_t qpn)
{
	struct urxe_direct_table *table = dev->attr.direct_table;
	uint8_t *chunk = chunk_of(table, qpn);

	if (!*chunk && dev->direct_chunks < URXE_DIRECT_CHUNKS)
		__atomic_store_n(chunk, ++dev->direct_chunks, __ATOMIC_RELAXED);
	return direct_qp_place(table, qpn);
}

void direct_publish_qp(struct urxe_dev *dev, const struct urxe_direct_qp *qp)
{
	struct urxe_direct_qp *place, now = *qp;

	if (!dev->attr.direct_table)
		return;
	place = take_qp_place(dev, qp->qpn);
	if (!place)
		return;
	now.version = place->version;
	if (!memcmp(place, &now, sizeof(now)))
		return;
	direct_withdraw_qp(dev, qp->qpn);
	write_entry(place, &now, sizeof(now));
}
