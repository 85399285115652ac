/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "mr.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dev.h"

struct urxe_mr {
	struct urxe_dev *dev;
	uint32_t pd;
	uint32_t key;
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	struct urxe_extent extents[];
};

static bool extents_add_up(const struct urxe_mr_attr *attr)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < attr->n_extents; i++) {
		if (__builtin_add_overflow(sum, attr->extents[i].length, &sum))
			return false;
	}
	return sum == attr->length;
}

/* A key is a running number and, against stale ones, 8 bits of noise in the tag (IBA 10.6.2.2). */
static uint32_t new_key(struct urxe_dev *dev)
{
	uint32_t key;

	do {
		dev->key_seed = dev->key_seed * 6364136223846793005u + 1442695040888963407u;
		key = ++dev->key_count << 8 | (uint32_t)(dev->key_seed >> 56);
	} while (!key || idmap_find(&dev->mrs, key));
	return key;
}

int urxe_mr_reg(struct urxe_dev *dev, const struct urxe_mr_attr *attr, struct urxe_mr **out)
{
	const uint32_t remote_writes = URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC;
	size_t size = attr->n_extents * sizeof(struct urxe_extent);
	struct urxe_mr *mr;
	int rc;

	if (!extents_add_up(attr) || (attr->length && attr->iova + attr->length - 1 < attr->iova))
		return -EINVAL;
	/* IBA 10.6.3.1: who may write from afar may write locally. */
	if (attr->access & remote_writes && !(attr->access & URXE_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	mr = malloc(sizeof(*mr) + size);
	if (!mr)
		return -ENOMEM;
	*mr = (struct urxe_mr){
		.dev = dev,
		.pd = attr->pd,
		.key = attr->key ? attr->key : new_key(dev),
		.access = attr->access,
		.iova = attr->iova,
		.length = attr->length,
	};
	if (size)
		memcpy(mr->extents, attr->extents, size);
	rc = idmap_add(&dev->mrs, mr->key, mr);
	if (rc)
		free(mr);
	else
		*out = mr;
	return rc;
}

void urxe_mr_dereg(struct urxe_mr *mr)
{
	idmap_remove(&mr->dev->mrs, mr->key);
	free(mr);
}

uint32_t urxe_mr_key(const struct urxe_mr *mr)
{
	return mr->key;
}

/* The region, if it grants the range (IBA 10.6.3, 9.7.4.1.5); NULL otherwise. */
static const struct urxe_mr *find(const struct urxe_dev *dev, const struct mr_range *range)
{
	const struct urxe_mr *mr = idmap_find(&dev->mrs, range->key);
	uint64_t offset;

	if (!mr || mr->pd != range->pd || range->access & ~mr->access)
		return NULL;
	offset = range->addr - mr->iova;
	if (range->addr < mr->iova || offset > mr->length || range->length > mr->length - offset)
		return NULL;
	return mr;
}

bool mr_check(const struct urxe_dev *dev, const struct mr_range *range)
{
	return find(dev, range);
}

/* A place in a region: an extent and an offset into it. */
struct place {
	const struct urxe_extent *extent;
	uint64_t offset;
};

/* Linear: memory of a process is one extent, a guest's a few. */
static struct place locate(const struct urxe_mr *mr, uint64_t addr)
{
	struct place place = {mr->extents, addr - mr->iova};

	while (place.offset >= place.extent->length) {
		place.offset -= place.extent->length;
		place.extent++;
	}
	return place;
}

/* The next piece of at most `left` bytes; steps over it. */
static uint8_t *next_piece(struct place *place, uint64_t left, uint64_t *piece)
{
	uint8_t *at = (uint8_t *)place->extent->addr + place->offset;
	uint64_t room = place->extent->length - place->offset;

	*piece = left < room ? left : room;
	place->offset = 0;
	place->extent++;
	return at;
}

/*
 * Programs poll the last byte of a message. Within one copy stores may become
 * visible in any order, so the last 8 bytes are stored after the rest.
 */
static void copy_last_bytes_last(uint8_t *dst, const uint8_t *src, uint64_t n)
{
	if (n > 8) {
		memcpy(dst, src, n - 8);
		atomic_thread_fence(memory_order_release);
		memcpy(dst + n - 8, src + n - 8, 8);
	} else {
		memcpy(dst, src, n);
	}
}

bool mr_write(const struct urxe_dev *dev, const struct mr_range *range, const uint8_t *src)
{
	const struct urxe_mr *mr = find(dev, range);
	uint64_t left = range->length, piece;
	struct place place;
	uint8_t *dst;

	if (!mr)
		return false;
	if (!left)
		return true;
	place = locate(mr, range->addr);
	for (; left; left -= piece, src += piece) {
		dst = next_piece(&place, left, &piece);
		copy_last_bytes_last(dst, src, piece);
	}
	return true;
}

bool mr_read(const struct urxe_dev *dev, const struct mr_range *range, uint8_t *dst)
{
	const struct urxe_mr *mr = find(dev, range);
	uint64_t left = range->length, piece;
	struct place place;
	const uint8_t *src;

	if (!mr)
		return false;
	if (!left)
		return true;
	place = locate(mr, range->addr);
	for (; left; left -= piece, dst += piece) {
		src = next_piece(&place, left, &piece);
		memcpy(dst, src, piece);
	}
	return true;
}

uint64_t *mr_atomic(const struct urxe_dev *dev, const struct mr_range *range)
{
	const struct urxe_mr *mr = find(dev, range);
	struct place place;
	uint64_t piece;
	uint8_t *at;

	if (!mr)
		return NULL;
	place = locate(mr, range->addr);
	at = next_piece(&place, sizeof(uint64_t), &piece);
	return piece == sizeof(uint64_t) && !((uintptr_t)at & 7) ? (uint64_t *)at : NULL;
}
