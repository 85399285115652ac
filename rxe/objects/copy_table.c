/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/copy_table.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "memory/mr.h"
#include "objects/device.h"
#include "objects/references.h"
#include "requester/copy_request.h"

static_assert(sizeof(struct urxe_copy_grant) == 64, "one cache line");
static_assert(sizeof(struct urxe_copy_qp) == 32, "two to a cache line");

/* --- Table entries of keys (grants) and of QPs. Both begin with their version. */

struct urxe_copy_grant *copy_table_grant(struct urxe_copy_table *table, uint32_t key)
{
	/* Keys are consecutive numbers, except for their low 8 bits. */
	return &table->grants[(key >> 8) % URXE_COPY_GRANTS];
}

/* The place of the QPN's block in the table's `chunks`. The remainder keeps the index in the array,
 * which covers the 24 bits of a QPN. */
static uint8_t *chunk_of(struct urxe_copy_table *table, uint32_t qpn)
{
	return &table->chunks[qpn / URXE_COPY_CHUNK % sizeof(table->chunks)];
}

struct urxe_copy_qp *copy_table_qp(struct urxe_copy_table *table, uint32_t qpn)
{
	uint32_t chunk = __atomic_load_n(chunk_of(table, qpn), __ATOMIC_RELAXED);

	if (!chunk || chunk > URXE_COPY_CHUNKS)
		return NULL;
	return &table->qps[chunk - 1][qpn % URXE_COPY_CHUNK];
}

/* Replaces a table entry by `entry`, with the version `later`. Meanwhile the version is odd, so
 * that readers reject the entry. */
static void write_entry(void *place, uint32_t later, const void *entry, size_t size)
{
	_Atomic uint32_t *version = place;

	atomic_store_explicit(version, later - 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy((uint8_t *)place + sizeof(*version), (const uint8_t *)entry + sizeof(*version),
	       size - sizeof(*version));
	atomic_store_explicit(version, later, memory_order_release);
}

static void write_grant(struct urxe_copy_grant *place, const struct urxe_copy_grant *grant)
{
	write_entry(place, place->version + 2, grant, sizeof(*grant));
}

/* The entries of all QPs take their versions from one counter: a QPN whose block gets another chunk
 * gets a version that it has never had. */
static void write_qp(struct urxe_dev *dev, struct urxe_copy_qp *place,
		     const struct urxe_copy_qp *qp)
{
	write_entry(place, dev->attr.copy_table->qp_version += 2, qp, sizeof(*qp));
}

bool copy_table_read_entry(const void *place, void *entry, size_t size)
{
	const _Atomic uint32_t *version = place;
	uint32_t before = atomic_load_explicit(version, memory_order_acquire);

	memcpy(entry, place, size);
	atomic_thread_fence(memory_order_acquire);
	*(uint32_t *)entry = before;
	return !(before & 1) && atomic_load_explicit(version, memory_order_relaxed) == before;
}

/* --- Publishing. */

int copy_table_init(struct urxe_dev *dev)
{
	struct urxe_copy_table *table = dev->attr.copy_table;

	if (!table)
		return 0;
	memset(table->chunks, 0, sizeof(table->chunks));
	dev->copy = calloc(1, sizeof(*dev->copy));
	return dev->copy ? 0 : -ENOMEM;
}

void copy_table_free(struct urxe_dev *dev)
{
	free(dev->copy);
	dev->copy = NULL;
}

static uint32_t units_of(uint32_t n_pieces)
{
	return (n_pieces + URXE_COPY_UNIT - 1) / URXE_COPY_UNIT;
}

/* The first unit of a free run of n units; COPY_UNITS: none is free. */
static uint32_t find_run(const struct copy_state *state, uint32_t n)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < COPY_UNITS; i++) {
		run = state->taken[i] ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return COPY_UNITS;
}

/* Gives the grant a run of entries in the list of pieces. False: too many pieces, or no room. */
static bool take_pieces(struct urxe_dev *dev, struct urxe_copy_grant *grant,
			const struct mr_piece *pieces)
{
	const uint32_t n = units_of(grant->n_pieces);
	uint32_t at =
		grant->n_pieces > URXE_COPY_GRANT_PIECES ? COPY_UNITS : find_run(dev->copy, n);
	struct urxe_copy_piece *to;

	if (at == COPY_UNITS)
		return false;
	memset(&dev->copy->taken[at], 1, n);
	grant->pieces = at * URXE_COPY_UNIT;
	/* Orders the new pieces after the epoch's increment for the region that had these entries
	 * before: a requester that reads a new piece also reads that epoch, and copies nothing by
	 * the old rights. */
	atomic_thread_fence(memory_order_release);
	to = &dev->attr.copy_table->pieces[grant->pieces];
	for (uint32_t i = 0; i < grant->n_pieces; i++) {
		__atomic_store_n(&to[i].offset, pieces[i].offset, __ATOMIC_RELAXED);
		__atomic_store_n(&to[i].addr, (uintptr_t)pieces[i].addr, __ATOMIC_RELAXED);
	}
	return true;
}

static void give_back_pieces(struct urxe_dev *dev, const struct urxe_copy_grant *grant)
{
	if (grant->n_pieces > 1)
		memset(&dev->copy->taken[grant->pieces / URXE_COPY_UNIT], 0,
		       units_of(grant->n_pieces));
}

void copy_table_publish_grant(struct urxe_dev *dev, const struct urxe_copy_grant *grant,
			      const struct mr_piece *pieces)
{
	struct urxe_copy_grant *place, now = *grant;

	if (!dev->attr.copy_table)
		return;
	place = copy_table_grant(dev->attr.copy_table, grant->key);
	if (!place->key && (now.n_pieces == 1 || take_pieces(dev, &now, pieces)))
		write_grant(place, &now);
}

/*
 * Called after an entry was removed. A requester that reads the table from now on finds no rights.
 * A requester that has read the table, but has not begun to copy, finds that the epoch has changed.
 * `withdrawn` finds the requesters that are copying.
 */
static void entries_withdrawn(struct urxe_dev *dev)
{
	__atomic_fetch_add(&dev->attr.copy_table->state.epoch, 1, __ATOMIC_SEQ_CST);
	dev->attr.copy_ops->withdrawn(dev->attr.copy_ctx);
}

void copy_table_withdraw_key(struct urxe_dev *dev, uint32_t key)
{
	static const struct urxe_copy_grant none;
	struct urxe_copy_grant *place, before;

	if (!dev->attr.copy_table)
		return;
	place = copy_table_grant(dev->attr.copy_table, key);
	if (place->key != key)
		return;
	/* Only this device writes to the table. */
	before = *place;
	write_grant(place, &none);
	entries_withdrawn(dev);
	give_back_pieces(dev, &before);
}

void urxe_copy_rights_withdraw(struct urxe_dev *dev)
{
	struct urxe_copy_table *table = dev->attr.copy_table;

	if (!table)
		return;
	for (uint32_t i = 0; i < URXE_COPY_GRANTS; i++)
		if (table->grants[i].key)
			copy_table_withdraw_key(dev, table->grants[i].key);
	for (uint32_t i = 0; i < URXE_COPY_CHUNKS; i++)
		for (uint32_t j = 0; j < URXE_COPY_CHUNK && dev->copy->chunks[i].n_qps; j++)
			if (table->qps[i][j].qpn)
				copy_table_withdraw_qp(dev, table->qps[i][j].qpn);
	end_all_references(dev);
}

bool copies_ended(struct urxe_dev *dev)
{
	return !dev->attr.copy_table || dev->attr.copy_ops->settled(dev->attr.copy_ctx);
}

/* The device's record of the chunk that the QPN's block has. The block must have a chunk. */
static struct copy_chunk *chunk_state(struct urxe_dev *dev, uint32_t qpn)
{
	return &dev->copy->chunks[*chunk_of(dev->attr.copy_table, qpn) - 1];
}

void copy_table_withdraw_qp(struct urxe_dev *dev, uint32_t qpn)
{
	static const struct urxe_copy_qp none;
	struct urxe_copy_qp *place;

	if (!dev->attr.copy_table)
		return;
	place = copy_table_qp(dev->attr.copy_table, qpn);
	if (!place || place->qpn != qpn)
		return;
	write_qp(dev, place, &none);
	entries_withdrawn(dev);
	chunk_state(dev, qpn)->n_qps--;
}

/* Gives the QP's entry a new version, which voids the proof of its peer (struct copy_proof). False:
 * the table has no entry of the QP. */
static bool renew_entry(struct urxe_dev *dev, uint32_t qpn)
{
	struct urxe_copy_qp *place, same;

	place = dev->attr.copy_table ? copy_table_qp(dev->attr.copy_table, qpn) : NULL;
	if (!place || place->qpn != qpn)
		return false;
	same = *place;
	write_qp(dev, place, &same);
	return true;
}

void copy_table_renew_qp(struct urxe_dev *dev, uint32_t qpn)
{
	if (renew_entry(dev, qpn))
		entries_withdrawn(dev);
}

void copy_table_reset_proofs(struct urxe_dev *dev)
{
	const struct urxe_qp *qp;
	bool renewed = false;

	if (dev->copy_generation && !++dev->copy_generation)
		dev->copy_generation = 1;
	for (uint32_t i = 0; (qp = idmap_next(&dev->qps, &i));)
		renewed |= renew_entry(dev, qp->qpn);
	if (renewed)
		entries_withdrawn(dev);
}

/* Gives a chunk without QPs to the QPN's block; the block that had the chunk loses it. Does nothing
 * if each chunk has QPs. */
static void take_chunk(struct urxe_dev *dev, uint32_t qpn)
{
	struct urxe_copy_table *table = dev->attr.copy_table;
	struct copy_chunk *chunk = dev->copy->chunks;
	uint8_t number = 1;

	for (; chunk->n_qps; chunk++)
		if (number++ == URXE_COPY_CHUNKS)
			return;
	if (*chunk_of(table, chunk->qpn_first) == number)
		__atomic_store_n(chunk_of(table, chunk->qpn_first), 0, __ATOMIC_RELAXED);
	chunk->qpn_first = qpn / URXE_COPY_CHUNK * URXE_COPY_CHUNK;
	__atomic_store_n(chunk_of(table, qpn), number, __ATOMIC_RELAXED);
}

/* The place for the QP's entry. NULL: all chunks have QPs of other blocks. */
static struct urxe_copy_qp *take_qp_place(struct urxe_dev *dev, uint32_t qpn)
{
	struct urxe_copy_table *table = dev->attr.copy_table;

	if (!*chunk_of(table, qpn))
		take_chunk(dev, qpn);
	return copy_table_qp(table, qpn);
}

void copy_table_publish_qp(struct urxe_dev *dev, const struct urxe_copy_qp *qp)
{
	struct urxe_copy_qp *place, now = *qp;

	if (!dev->attr.copy_table)
		return;
	place = take_qp_place(dev, qp->qpn);
	if (!place)
		return;
	now.version = place->version;
	if (!memcmp(place, &now, sizeof(now)))
		return;
	copy_table_withdraw_qp(dev, qp->qpn);
	write_qp(dev, place, &now);
	chunk_state(dev, qp->qpn)->n_qps++;
}
