/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "mr.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dev.h"
#include "mw.h"

#define REGION_ACCESS                                                                   \
	(URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | \
	 URXE_ACCESS_REMOTE_ATOMIC | URXE_ACCESS_MW_BIND | URXE_ACCESS_ZERO_BASED |     \
	 URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)

static bool extents_add_up(const struct urxe_mr_attr *attr)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < attr->n_extents; i++) {
		if (__builtin_add_overflow(sum, attr->extents[i].length, &sum))
			return false;
	}
	return sum == attr->length;
}

bool mr_index_taken(const struct urxe_dev *dev, uint32_t key)
{
	for (uint32_t tag = 0; tag < 256; tag++) {
		if (idmap_find(&dev->mrs, (key & ~0xffu) | tag))
			return true;
	}
	return mw_find(dev, key);
}

uint32_t mr_new_key(struct urxe_dev *dev, bool whole)
{
	uint32_t key;

	do {
		dev->key_seed = dev->key_seed * 6364136223846793005u + 1442695040888963407u;
		key = ++dev->key_count << 8 | (uint32_t)(dev->key_seed >> 56);
	} while (!key || idmap_find(&dev->mrs, key) || mw_find(dev, key) ||
		 (whole && mr_index_taken(dev, key)));
	return key;
}

static int check_attr(const struct urxe_dev *dev, const struct urxe_mr_attr *attr)
{
	const uint32_t remote_writes = URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC;

	if (!extents_add_up(attr) || (attr->length && attr->iova + attr->length - 1 < attr->iova))
		return -EINVAL;
	if (attr->access & ~REGION_ACCESS)
		return -EINVAL;
	if (attr->access & URXE_ACCESS_FLUSH_PERSISTENT && !dev->attr.ops->persist)
		return -EOPNOTSUPP;
	/* IBA 10.6.3.1: who may write from afar may write locally. */
	if (attr->access & remote_writes && !(attr->access & URXE_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

/* A region that no key leads to yet. */
static struct urxe_mr *make_mr(struct urxe_dev *dev, const struct urxe_mr_attr *attr)
{
	size_t size = attr->n_extents * sizeof(struct urxe_extent);
	struct urxe_mr *mr = malloc(sizeof(*mr) + size);

	if (!mr)
		return NULL;
	*mr = (struct urxe_mr){
		.dev = dev,
		.pd = attr->pd,
		.access = attr->access,
		.iova = attr->iova,
		.length = attr->length,
	};
	if (size)
		memcpy(mr->extents, attr->extents, size);
	return mr;
}

int urxe_mr_reg(struct urxe_dev *dev, const struct urxe_mr_attr *attr, struct urxe_mr **out)
{
	struct urxe_mr *mr;
	int rc = check_attr(dev, attr);

	if (rc)
		return rc;
	if (attr->key && mw_find(dev, attr->key))
		return -EEXIST;
	mr = make_mr(dev, attr);
	if (!mr)
		return -ENOMEM;
	mr->key = attr->key ? attr->key : mr_new_key(dev, false);
	rc = idmap_add(&dev->mrs, mr->key, mr);
	if (rc)
		free(mr);
	else
		*out = mr;
	return rc;
}

int urxe_mr_rereg(struct urxe_mr **mr, const struct urxe_mr_attr *attr)
{
	struct urxe_dev *dev = (*mr)->dev;
	struct urxe_mr *changed;
	int rc = check_attr(dev, attr);

	if (rc)
		return rc;
	if ((*mr)->windows)
		return -EBUSY;
	changed = make_mr(dev, attr);
	if (!changed)
		return -ENOMEM;
	changed->key = (*mr)->key;
	idmap_replace(&dev->mrs, changed->key, changed);
	free(*mr);
	*mr = changed;
	return 0;
}

int urxe_mr_dereg(struct urxe_mr *mr)
{
	if (mr->windows)
		return -EBUSY;
	idmap_remove(&mr->dev->mrs, mr->key);
	free(mr);
	return 0;
}

uint32_t urxe_mr_key(const struct urxe_mr *mr)
{
	return mr->key;
}

void urxe_mr_query(const struct urxe_mr *mr, struct urxe_mr_attr *attr)
{
	*attr = (struct urxe_mr_attr){
		.pd = mr->pd,
		.access = mr->access,
		.iova = mr->iova,
		.length = mr->length,
		.key = mr->key,
	};
}

bool mr_within(uint64_t start, uint64_t size, uint64_t addr, uint64_t length, uint64_t *offset)
{
	*offset = addr - start;
	return addr >= start && *offset <= size && length <= size - *offset;
}

/* A range that was granted: in a region, from an offset on. */
struct span {
	const struct urxe_mr *mr;
	uint64_t offset;
};

static bool window_grants(const struct urxe_dev *dev, const struct mr_range *range,
			  struct span *span)
{
	const struct urxe_mw *mw = mw_find(dev, range->key);

	if (!mw || mw->key != range->key || !mw_serves(mw, range->qpn))
		return false;
	if (mw->pd != range->pd || range->access & ~mw->access ||
	    !mr_within(mw->start, mw->length, range->addr, range->length, &span->offset))
		return false;
	span->mr = mw->mr;
	span->offset += mw->offset;
	return true;
}

/* Whether a region or a window grants the range (IBA 10.6.3, 9.7.4.1.5). */
static bool grants(const struct urxe_dev *dev, const struct mr_range *range, struct span *span)
{
	const struct urxe_mr *mr = idmap_find(&dev->mrs, range->key);

	if (!mr)
		return window_grants(dev, range, span);
	span->mr = mr;
	return mr->pd == range->pd && !(range->access & ~mr->access) &&
	       mr_within(mr->iova, mr->length, range->addr, range->length, &span->offset);
}

bool mr_check(const struct urxe_dev *dev, const struct mr_range *range)
{
	struct span span;

	return grants(dev, range, &span);
}

/* A place in a region: an extent and an offset into it. */
struct place {
	const struct urxe_extent *extent;
	uint64_t offset;
};

/* Linear: memory of a process is one extent, a guest's a few. */
static struct place locate(const struct span *span)
{
	struct place place = {span->mr->extents, span->offset};

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

/* Whether the memory was there: whoever owns the process knows how to touch what may not be. */
static bool touch(struct urxe_dev *dev, const struct urxe_extent *bytes, void (*fn)(void *),
		  void *arg)
{
	if (!dev->attr.ops->guard) {
		fn(arg);
		return true;
	}
	if (dev->attr.ops->guard(dev->attr.ctx, bytes, fn, arg))
		return true;
	dev_count(dev, URXE_EVENT_MEMORY_GONE);
	return false;
}

struct copy {
	uint8_t *dst;
	const uint8_t *src;
	uint64_t n;
};

/*
 * Programs poll the last byte of a message. Within one copy stores may become
 * visible in any order, so the last 8 bytes are stored after the rest.
 */
static void copy_last_bytes_last(void *arg)
{
	const struct copy *c = arg;

	if (c->n > 8) {
		memcpy(c->dst, c->src, c->n - 8);
		atomic_thread_fence(memory_order_release);
		memcpy(c->dst + c->n - 8, c->src + c->n - 8, 8);
	} else {
		memcpy(c->dst, c->src, c->n);
	}
}

static void copy(void *arg)
{
	const struct copy *c = arg;

	memcpy(c->dst, c->src, c->n);
}

bool mr_write(struct urxe_dev *dev, const struct mr_range *range, const uint8_t *src)
{
	uint64_t left = range->length, piece;
	struct span span;
	struct place place;

	if (!grants(dev, range, &span))
		return false;
	if (!left)
		return true;
	place = locate(&span);
	for (; left; left -= piece, src += piece) {
		uint8_t *dst = next_piece(&place, left, &piece);
		struct copy c = {.dst = dst, .src = src, .n = piece};

		if (!touch(dev, &(struct urxe_extent){dst, piece}, copy_last_bytes_last, &c))
			return false;
	}
	return true;
}

bool mr_read(struct urxe_dev *dev, const struct mr_range *range, uint8_t *dst)
{
	uint64_t left = range->length, piece;
	struct span span;
	struct place place;

	if (!grants(dev, range, &span))
		return false;
	if (!left)
		return true;
	place = locate(&span);
	for (; left; left -= piece, dst += piece) {
		uint8_t *src = next_piece(&place, left, &piece);
		struct copy c = {.dst = dst, .src = src, .n = piece};

		if (!touch(dev, &(struct urxe_extent){src, piece}, copy, &c))
			return false;
	}
	return true;
}

bool mr_whole(const struct urxe_dev *dev, struct mr_range *range)
{
	const struct urxe_mr *mr = idmap_find(&dev->mrs, range->key);
	const struct urxe_mw *mw = mr ? NULL : mw_find(dev, range->key);

	if (!mr && !mw)
		return false;
	range->addr = mr ? mr->iova : mw->start;
	range->length = mr ? mr->length : mw->length;
	return true;
}

/* A store is seen by all once a fence is behind it; what lasts is the owner's knowledge. */
bool mr_flush(const struct urxe_dev *dev, const struct mr_range *range)
{
	uint64_t left = range->length, piece;
	struct urxe_extent bytes;
	struct span span;
	struct place place;

	atomic_thread_fence(memory_order_seq_cst);
	if (!grants(dev, range, &span))
		return false;
	if (!left || !(range->access & URXE_ACCESS_FLUSH_PERSISTENT))
		return true;
	place = locate(&span);
	for (; left; left -= piece) {
		bytes.addr = next_piece(&place, left, &piece);
		bytes.length = piece;
		if (!dev->attr.ops->persist(dev->attr.ctx, &bytes))
			return false;
	}
	return true;
}

struct atomic_access {
	uint64_t *at;
	struct mr_atomic *op;
};

static void apply(void *arg)
{
	const struct atomic_access *access = arg;
	struct mr_atomic *op = access->op;

	switch (op->kind) {
	case MR_FETCH_ADD:
		op->original = __atomic_fetch_add(access->at, op->operand, __ATOMIC_SEQ_CST);
		break;
	case MR_COMPARE_SWAP:
		op->original = op->compare;
		__atomic_compare_exchange_n(access->at, &op->original, op->operand, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		break;
	case MR_STORE: __atomic_store_n(access->at, op->operand, __ATOMIC_SEQ_CST); break;
	}
}

bool mr_atomic(struct urxe_dev *dev, const struct mr_range *range, struct mr_atomic *op)
{
	struct atomic_access access = {.op = op};
	struct span span;
	struct place place;
	uint64_t piece;

	if (!grants(dev, range, &span))
		return false;
	place = locate(&span);
	access.at = (uint64_t *)next_piece(&place, sizeof(uint64_t), &piece);
	if (piece != sizeof(uint64_t) || (uintptr_t)access.at & 7)
		return false;
	return touch(dev, &(struct urxe_extent){access.at, piece}, apply, &access);
}
