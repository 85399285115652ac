/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "direct/direct_table.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "objects/device.h"

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

void direct_publish_grant(struct urxe_dev *dev, const struct urxe_direct_grant *grant)
{
	struct urxe_direct_grant *place;

	if (!dev->attr.direct_table)
		return;
	place = direct_grant_place(dev->attr.direct_table, grant->key);
	if (!place->key)
		write_entry(place, grant, sizeof(*grant));
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
	dev->attr.direct->withdrawn(dev->attr.ctx);
}

void direct_withdraw(struct urxe_dev *dev, uint32_t key)
{
	static const struct urxe_direct_grant none;
	struct urxe_direct_grant *place;

	if (!dev->attr.direct_table)
		return;
	place = direct_grant_place(dev->attr.direct_table, key);
	if (place->key == key)
		withdraw_entry(dev, place, &none, sizeof(none));
}

bool direct_copies_ended(struct urxe_dev *dev)
{
	return !dev->attr.direct_table || dev->attr.direct->settled(dev->attr.ctx);
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
