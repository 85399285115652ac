/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/mr.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "objects/copy_table.h"
#include "objects/device.h"
#include "objects/offload_objects.h"
#include "objects/references.h"
#include "util/ordered_copy.h"

/* The search for a free key continues at a random number after so many consecutive keys in use. */
#define KEYS_IN_A_ROW 16

static bool has_valid_extents(const struct urxe_mr_attr *attr)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < attr->n_extents; i++) {
		if (__builtin_add_overflow(sum, attr->extents[i].length, &sum))
			return false;
	}
	return sum == attr->length;
}

/* Whether a window or a fast registration owns all keys with these upper bits. */
static bool is_reserved(const struct urxe_dev *dev, uint32_t key)
{
	return mw_find(dev, key) || fast_mr_find(dev, key);
}

bool mr_index_taken(const struct urxe_dev *dev, uint32_t key)
{
	for (uint32_t tag = 0; tag < 256; tag++) {
		if (idmap_find(&dev->mrs, (key & ~0xffu) | tag))
			return true;
	}
	return is_reserved(dev, key);
}

static uint32_t next_key(struct urxe_dev *dev)
{
	dev->key_seed = dev->key_seed * 6364136223846793005u + 1442695040888963407u;
	return ++dev->key_count << 8 | (uint32_t)(dev->key_seed >> 56);
}

static bool is_free(const struct urxe_dev *dev, uint32_t key, bool whole)
{
	return key && !idmap_find(&dev->mrs, key) && !is_reserved(dev, key) &&
	       !(whole && mr_index_taken(dev, key));
}

uint32_t mr_new_key(struct urxe_dev *dev, bool whole)
{
	uint32_t key = next_key(dev);

	/* Keys that were chosen one after the other may all be in use: after KEYS_IN_A_ROW of them
	 * the search continues at a random number. */
	for (uint32_t n = 1; !is_free(dev, key, whole); n++) {
		if (n % KEYS_IN_A_ROW == 0)
			dev->key_count += (uint32_t)(dev->key_seed >> 32);
		key = next_key(dev);
	}
	return key;
}

int mr_check_attr(const struct urxe_dev *dev, const struct urxe_mr_attr *attr)
{
	const uint32_t remote_writes = URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC;

	if (!has_valid_extents(attr) ||
	    (attr->length && attr->iova + attr->length - 1 < attr->iova))
		return -EINVAL;
	if (attr->access & ~URXE_ACCESS_ALL)
		return -EINVAL;
	if (attr->access & URXE_ACCESS_FLUSH_PERSISTENT && !dev->attr.ops->persist)
		return -EOPNOTSUPP;
	/* IBA 10.6.3.1: remote write and atomic rights require the local write right. */
	if (attr->access & remote_writes && !(attr->access & URXE_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

void mr_fill(struct urxe_mr *mr, struct urxe_dev *dev, const struct urxe_mr_attr *attr)
{
	uint64_t offset = 0;

	*mr = (struct urxe_mr){
		.dev = dev,
		.pd = attr->pd,
		.key = attr->key,
		.access = attr->access,
		.iova = attr->iova,
		.length = attr->length,
		.pieces = mr->at_first,
	};
	for (uint32_t i = 0; i < attr->n_extents; i++) {
		if (!attr->extents[i].length)
			continue;
		mr->pieces[mr->n_pieces++] = (struct mr_piece){offset, attr->extents[i].addr};
		offset += attr->extents[i].length;
	}
	mr->pieces[mr->n_pieces] = (struct mr_piece){offset, NULL};
}

struct urxe_mr *mr_allocate(uint32_t n_extents)
{
	struct urxe_mr *mr =
		malloc(sizeof(*mr) + (n_extents + (size_t)1) * sizeof(struct mr_piece));

	if (mr)
		mr->pieces = mr->at_first;
	return mr;
}

/* Allocates a region from the attributes, and does not add it to dev->mrs. NULL: no memory. */
static struct urxe_mr *make_mr(struct urxe_dev *dev, const struct urxe_mr_attr *attr)
{
	struct urxe_mr *mr = mr_allocate(attr->n_extents);

	if (mr)
		mr_fill(mr, dev, attr);
	return mr;
}

void mr_free(struct urxe_mr *mr)
{
	if (mr->pieces != mr->at_first)
		free(mr->pieces);
	free(mr);
}

bool mr_is_held(const struct urxe_mr *mr)
{
	for (uint32_t i = 0; mr->held && i < mr->n_pieces; i++)
		if (mr->held[i].addr)
			return true;
	return false;
}

/* Whether a grant may publish the region: a part is mapped, no unmapping call is in progress, and
 * the list of pieces is short enough. */
static bool is_grantable(const struct urxe_mr *mr)
{
	if (!mr->length || mr->n_pieces > URXE_COPY_GRANT_PIECES || mr_is_held(mr))
		return false;
	for (uint32_t i = 0; i < mr->n_pieces; i++)
		if (mr->pieces[i].addr)
			return true;
	return false;
}

void mr_publish(const struct urxe_mr *mr)
{
	const struct urxe_copy_grant grant = {
		.key = mr->key,
		.pd = mr->pd,
		.access = mr->access,
		.start = mr->iova,
		.length = mr->length,
		.addr = (uintptr_t)mr->pieces[0].addr,
		.n_pieces = mr->n_pieces,
	};

	if (mr->dev->attr.copy_table && is_grantable(mr))
		copy_table_publish_grant(mr->dev, &grant, mr->pieces);
}

/* Sets the key, and returns 0 or an error of the HCA. The owner's choice comes first, then the
 * HCA's, then the engine's. */
static int choose_key(struct urxe_mr *mr, const struct urxe_mr_attr *attr)
{
	struct urxe_dev *dev = mr->dev;
	int rc = offload_register(dev, attr, &mr->hca, &mr->key);

	if (rc)
		return rc;
	if (mr->hca && (!mr->key || is_reserved(dev, mr->key) || mr_find(dev, mr->key)))
		offload_deregister(mr);
	if (!mr->hca)
		mr->key = attr->key ? attr->key : mr_new_key(dev, false);
	return 0;
}

/* Executes urxe_mr_rereg for a region that the HCA has, too: registers a new region, whose key the
 * HCA chooses, and deregisters the old one. After an error the old one stays. */
static int replace_offloaded(struct urxe_mr **mr, const struct urxe_mr_attr *attr)
{
	struct urxe_mr_attr wanted = *attr;
	struct urxe_mr *changed;
	int rc;

	wanted.key = 0;
	rc = urxe_mr_reg((*mr)->dev, &wanted, &changed);
	if (rc)
		return rc;
	urxe_mr_dereg(*mr);
	*mr = changed;
	return 0;
}

static int add_region(struct urxe_mr *mr, struct urxe_mr **out)
{
	struct urxe_dev *dev = mr->dev;
	int rc = idmap_add(&dev->mrs, mr->key, mr);

	if (rc)
		return rc;
	dev->regions_without_hca += !mr->hca;
	mr_publish(mr);
	*out = mr;
	return 0;
}

int urxe_mr_reg(struct urxe_dev *dev, const struct urxe_mr_attr *attr, struct urxe_mr **out)
{
	struct urxe_mr *mr;
	int rc = mr_check_attr(dev, attr);

	RECORD_ENTRY(dev, MR_REG, .mr = *attr);
	if (rc)
		return rc;
	if (attr->key && is_reserved(dev, attr->key))
		return -EEXIST;
	mr = make_mr(dev, attr);
	if (!mr)
		return -ENOMEM;
	rc = choose_key(mr, attr);
	if (!rc)
		rc = add_region(mr, out);
	if (rc) {
		offload_deregister(mr);
		mr_free(mr);
	}
	return rc;
}

int urxe_offload_mr_reg(struct urxe_dev *dev, const struct urxe_mr_attr *attr, void *hca,
			uint32_t key, struct urxe_mr **out)
{
	struct urxe_mr *mr;
	int rc = mr_check_attr(dev, attr);

	RECORD_ENTRY(dev, MR_REG, .mr = *attr);
	if (rc)
		return rc;
	if (hca && (!key || is_reserved(dev, key) || mr_find(dev, key)))
		return -EEXIST;
	mr = make_mr(dev, attr);
	if (!mr)
		return -ENOMEM;
	mr->hca = hca;
	mr->key = hca ? key : mr_new_key(dev, false);
	rc = add_region(mr, out);
	if (rc)
		mr_free(mr);
	else if (hca)
		offload_count_region(dev, attr->length, 1);
	return rc;
}

int urxe_offload_mr_rereg(struct urxe_mr **mr, const struct urxe_mr_attr *attr, void *hca,
			  uint32_t key)
{
	struct urxe_mr *changed;
	int rc;

	if ((*mr)->windows)
		return -EBUSY;
	rc = urxe_offload_mr_reg((*mr)->dev, attr, hca, key, &changed);
	if (rc)
		return rc;
	urxe_mr_dereg(*mr);
	*mr = changed;
	return 0;
}

bool urxe_offload_has_mr(const struct urxe_mr *mr)
{
	return mr->hca;
}

struct urxe_offload_memory urxe_offload_memory(const struct urxe_dev *dev)
{
	return dev->hca_memory;
}

int urxe_mr_rereg(struct urxe_mr **mr, const struct urxe_mr_attr *attr)
{
	struct urxe_dev *dev = (*mr)->dev;
	struct urxe_mr *changed;
	int rc = mr_check_attr(dev, attr);

	RECORD_ENTRY(dev, MR_REREG, .key = (*mr)->key, .mr = *attr);
	if (rc)
		return rc;
	if ((*mr)->windows)
		return -EBUSY;
	if ((*mr)->hca)
		return replace_offloaded(mr, attr);
	changed = make_mr(dev, attr);
	if (!changed)
		return -ENOMEM;
	changed->key = (*mr)->key;
	idmap_replace(&dev->mrs, changed->key, changed);
	copy_table_withdraw_key(dev, changed->key);
	end_references_by_key(dev, changed->key);
	mr_publish(changed);
	mr_free(*mr);
	*mr = changed;
	return 0;
}

int urxe_mr_dereg(struct urxe_mr *mr)
{
	RECORD_ENTRY(mr->dev, MR_DEREG, .key = mr->key);
	if (mr->windows)
		return -EBUSY;
	idmap_remove(&mr->dev->mrs, mr->key);
	mr->dev->regions_without_hca -= !mr->hca;
	offload_deregister(mr);
	copy_table_withdraw_key(mr->dev, mr->key);
	end_references_by_key(mr->dev, mr->key);
	mr_free(mr);
	return 0;
}

bool urxe_mr_has_bytes(const struct urxe_mr *mr, const struct urxe_extent *bytes)
{
	const uintptr_t first = (uintptr_t)bytes->addr;

	for (uint32_t i = 0; i < mr->n_pieces; i++) {
		const struct mr_piece *piece = &mr->pieces[i];
		const uintptr_t at = (uintptr_t)piece->addr;

		if (at && at - first < bytes->length)
			return true;
		if (at && first - at < piece[1].offset - piece->offset)
			return true;
	}
	return false;
}

bool urxe_mr_next_bytes(const struct urxe_mr *mr, uint32_t *i, struct urxe_extent *bytes)
{
	const struct mr_piece *piece;

	while (*i < mr->n_pieces && !mr->pieces[*i].addr)
		++*i;
	if (*i == mr->n_pieces)
		return false;
	piece = &mr->pieces[(*i)++];
	*bytes = (struct urxe_extent){piece->addr, piece[1].offset - piece->offset};
	return true;
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

/* The start of a granted range: a region and an offset. */
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

/* Whether a region or a window grants the range (IBA 10.6.3, 9.7.4.1.5); sets *span to its
 * start. */
static bool find_granted_span(const struct urxe_dev *dev, const struct mr_range *range,
			      struct span *span)
{
	const struct urxe_mr *mr = mr_find(dev, range->key);

	if (!mr)
		return window_grants(dev, range, span);
	span->mr = mr;
	return mr->pd == range->pd && !(range->access & ~mr->access) &&
	       mr_within(mr->iova, mr->length, range->addr, range->length, &span->offset);
}

bool mr_check(const struct urxe_dev *dev, const struct mr_range *range)
{
	struct span span;

	return find_granted_span(dev, range, &span);
}

/* A position in a region: a piece and an offset into it. */
struct place {
	const struct mr_piece *piece;
	uint64_t offset;
};

/* The position at which the span begins. Uses a binary search: a region of a guest may have many
 * pieces, though that of a process has one. */
static struct place locate_span(const struct span *span)
{
	const struct mr_piece *from = span->mr->pieces;
	uint32_t n = span->mr->n_pieces;

	while (n > 1) {
		uint32_t half = n / 2;

		if (from[half].offset <= span->offset)
			from += half;
		n -= half;
	}
	return (struct place){from, span->offset - from->offset};
}

/* The next contiguous bytes, at most `left`; moves the position behind them. */
static struct urxe_extent next_bytes(struct place *place, uint64_t left)
{
	const struct mr_piece *piece = place->piece;
	uint64_t room = piece[1].offset - piece->offset - place->offset;
	struct urxe_extent bytes = {
		.addr = piece->addr ? piece->addr + place->offset : NULL,
		.length = left < room ? left : room,
	};

	place->piece++;
	place->offset = 0;
	return bytes;
}

static bool report_memory_gone(struct urxe_dev *dev)
{
	dev_count(dev, URXE_EVENT_MEMORY_GONE);
	return false;
}

bool mr_list_extents(const struct urxe_dev *dev, const struct mr_range *range,
		     struct urxe_extent *extents, uint32_t max, uint32_t *n)
{
	uint64_t left = range->length;
	struct span span;
	struct place place;

	if (!find_granted_span(dev, range, &span))
		return false;
	if (!left)
		return true;
	place = locate_span(&span);
	for (; left; left -= extents[(*n)++].length) {
		if (*n == max)
			return false;
		extents[*n] = next_bytes(&place, left);
		if (!extents[*n].addr)
			return false;
	}
	return true;
}

/* Calls fn on the bytes. False: the memory is unmapped. */
static bool touch_bytes(struct urxe_dev *dev, const struct urxe_extent *bytes, void (*fn)(void *),
			void *arg)
{
	bool mapped;

	if (!bytes->addr)
		return report_memory_gone(dev);
	if (!dev->attr.ops->guard) {
		fn(arg);
		return true;
	}
	mapped = dev->attr.ops->guard(dev->attr.ctx, bytes, fn, arg);
	if (HAS_RECORDING(dev))
		mapped = record_answer(dev, QUESTION_GUARD, mapped);
	return mapped || report_memory_gone(dev);
}

/* As touch_bytes, for a function that writes. */
static bool write_bytes(struct urxe_dev *dev, const struct urxe_extent *bytes, void (*fn)(void *),
			void *arg)
{
	const bool done = touch_bytes(dev, bytes, fn, arg);

	if (dev->attr.ops->written && bytes->addr)
		dev->attr.ops->written(dev->attr.ctx, bytes);
	return done;
}

struct copy {
	uint8_t *dst;
	const uint8_t *src;
	uint64_t n;
};

static void copy_ordered(void *arg)
{
	const struct copy *c = arg;

	copy_last_bytes_last(c->dst, c->src, c->n);
}

static void copy_plain(void *arg)
{
	const struct copy *c = arg;

	memcpy(c->dst, c->src, c->n);
}

bool mr_write(struct urxe_dev *dev, const struct mr_range *range, const uint8_t *src)
{
	uint64_t left = range->length;
	struct urxe_extent bytes;
	struct span span;
	struct place place;

	if (!find_granted_span(dev, range, &span))
		return false;
	if (!left)
		return true;
	place = locate_span(&span);
	for (; left; left -= bytes.length, src += bytes.length) {
		struct copy c = {.src = src};

		bytes = next_bytes(&place, left);
		c.dst = bytes.addr;
		c.n = bytes.length;
		if (!write_bytes(dev, &bytes, copy_ordered, &c))
			return false;
	}
	return true;
}

bool mr_read(struct urxe_dev *dev, const struct mr_range *range, uint8_t *dst)
{
	uint64_t left = range->length;
	struct urxe_extent bytes;
	struct span span;
	struct place place;

	if (!find_granted_span(dev, range, &span))
		return false;
	if (!left)
		return true;
	place = locate_span(&span);
	for (; left; left -= bytes.length, dst += bytes.length) {
		struct copy c = {.dst = dst};

		bytes = next_bytes(&place, left);
		c.src = bytes.addr;
		c.n = bytes.length;
		if (!touch_bytes(dev, &bytes, copy_plain, &c))
			return false;
	}
	return true;
}

bool mr_whole(const struct urxe_dev *dev, struct mr_range *range)
{
	const struct urxe_mr *mr = mr_find(dev, range->key);
	const struct urxe_mw *mw = mr ? NULL : mw_find(dev, range->key);

	if (!mr && !mw)
		return false;
	range->addr = mr ? mr->iova : mw->start;
	range->length = mr ? mr->length : mw->length;
	return true;
}

static bool call_persist(struct urxe_dev *dev, const struct urxe_extent *bytes)
{
	bool done = dev->attr.ops->persist(dev->attr.ctx, bytes);

	return HAS_RECORDING(dev) ? record_answer(dev, QUESTION_PERSIST, done) : done;
}

/* The fence makes earlier stores visible to all processors; the owner's `persist` makes them
 * survive a loss of power. */
bool mr_flush(struct urxe_dev *dev, const struct mr_range *range)
{
	uint64_t left = range->length;
	struct urxe_extent bytes;
	struct span span;
	struct place place;

	atomic_thread_fence(memory_order_seq_cst);
	if (!find_granted_span(dev, range, &span))
		return false;
	if (!left || !(range->access & URXE_ACCESS_FLUSH_PERSISTENT))
		return true;
	place = locate_span(&span);
	for (; left; left -= bytes.length) {
		bytes = next_bytes(&place, left);
		if (!bytes.addr)
			return report_memory_gone(dev);
		if (!call_persist(dev, &bytes))
			return false;
	}
	return true;
}

struct atomic_access {
	uint64_t *at;
	struct mr_atomic *op;
};

static void apply_atomic(void *arg)
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
	struct urxe_extent bytes;
	struct span span;
	struct place place;

	if (!find_granted_span(dev, range, &span))
		return false;
	place = locate_span(&span);
	bytes = next_bytes(&place, sizeof(uint64_t));
	access.at = bytes.addr;
	if (bytes.length != sizeof(uint64_t) || (uintptr_t)access.at & 7)
		return false;
	return write_bytes(dev, &bytes, apply_atomic, &access);
}
