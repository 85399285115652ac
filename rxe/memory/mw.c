/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/mw.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/mr.h"
#include "objects/copy_table.h"
#include "objects/qp.h"

#define TAG_MASK 0xffu
#define CHANGES  (URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC)
#define FLUSHES  (URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)
/* Programs set this flag when they bind a window, and devices accept it. A window has no local key,
 * so the flag grants nothing. */
#define IGNORED URXE_ACCESS_LOCAL_WRITE

static bool is_valid_type(uint8_t type)
{
	return type == URXE_MW_TYPE_1 || type == URXE_MW_TYPE_2;
}

int urxe_mw_alloc(struct urxe_dev *dev, const struct urxe_mw_attr *attr, struct urxe_mw **out)
{
	struct urxe_mw *mw;
	int rc;

	RECORD_ENTRY(dev, MW_ALLOC, .key = attr->key, .mw = {attr->pd, attr->type});
	if (!is_valid_type(attr->type))
		return -EINVAL;
	if (dev->offload)
		return -EOPNOTSUPP;
	if (attr->key && mr_index_taken(dev, attr->key))
		return -EEXIST;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->dev = dev;
	mw->pd = attr->pd;
	mw->type = attr->type;
	mw->key = attr->key ? attr->key : mr_new_key(dev, true);
	rc = idmap_add(&dev->mws, mw->key >> 8, mw);
	if (rc)
		free(mw);
	else
		*out = mw;
	return rc;
}

static void unbind_mw(struct urxe_mw *mw)
{
	if (!mw->mr)
		return;
	copy_table_withdraw_key(mw->dev, mw->key);
	mw->mr->windows--;
	mw->mr = NULL;
	if (mw->type == URXE_MW_TYPE_2)
		LIST_REMOVE(mw, qp_link);
}

void urxe_mw_dealloc(struct urxe_mw *mw)
{
	RECORD_ENTRY(mw->dev, MW_DEALLOC, .key = mw->key);
	unbind_mw(mw);
	idmap_remove(&mw->dev->mws, mw->key >> 8);
	free(mw);
}

uint32_t urxe_mw_key(const struct urxe_mw *mw)
{
	return mw->key;
}

/* Whether the window allows the binding (IBA 10.6.7.2; C10-72, o10-36.2.2, o10-37.2.30,
 * o10-37.2.40). */
static bool is_window_bindable(const struct urxe_qp *qp, const struct urxe_mw *mw,
			       const struct urxe_mw_bind *bind)
{
	if (mw->key != bind->mw_key || mw->pd != qp->pd || bind->access & ~(MW_RIGHTS | IGNORED))
		return false;
	if (mw->type == URXE_MW_TYPE_1)
		return !(bind->access & URXE_ACCESS_ZERO_BASED);
	return !mw->mr && bind->length;
}

bool mw_region_permits(const struct urxe_mw *mw, const struct urxe_mr *mr, uint32_t access)
{
	return mr && mr->pd == mw->pd && mr->access & URXE_ACCESS_MW_BIND &&
	       !(mr->access & URXE_ACCESS_ZERO_BASED) && !(access & FLUSHES & ~mr->access) &&
	       (!(access & CHANGES) || mr->access & URXE_ACCESS_LOCAL_WRITE);
}

bool mw_withdraw_key(struct urxe_dev *dev, uint32_t key)
{
	const struct urxe_mw *mw = mw_find(dev, key);

	if (!mw || mw->key != key || !mw->mr)
		return true;
	copy_table_withdraw_key(dev, key);
	return copies_ended(dev);
}

void mw_publish(const struct urxe_mw *mw)
{
	const struct urxe_mr *mr = mw->mr;
	struct urxe_copy_grant grant;

	if (!mr || !mr_is_one_piece(mr))
		return;
	grant = (struct urxe_copy_grant){
		.key = mw->key,
		.pd = mw->pd,
		.access = mw->access,
		.qpn = mw->type == URXE_MW_TYPE_2 ? mw->qpn : 0,
		.start = mw->start,
		.length = mw->length,
		.addr = (uintptr_t)mr->pieces[0].addr + mw->offset,
		.n_pieces = 1,
	};
	copy_table_publish_grant(mw->dev, &grant, NULL);
}

static bool is_bindable(const struct urxe_qp *qp, const struct urxe_mw *mw,
			const struct urxe_mw_bind *bind, const struct urxe_mr *mr, uint64_t *offset)
{
	return is_window_bindable(qp, mw, bind) &&
	       (!bind->length ||
		(mw_region_permits(mw, mr, bind->access) &&
		 mr_within(mr->iova, mr->length, bind->addr, bind->length, offset)));
}

bool mw_bind(struct urxe_qp *qp, const struct urxe_mw_bind *bind)
{
	struct urxe_mw *mw = mw_find(qp->dev, bind->mw_key);
	struct urxe_mr *mr = bind->length ? mr_find(qp->dev, bind->mr_key) : NULL;
	uint64_t offset = 0;

	if (!mw)
		return false;
	/* The old binding stays: publishes its rights again, which the caller has withdrawn
	 * (mw_withdraw_key). */
	if (!is_bindable(qp, mw, bind, mr, &offset)) {
		mw_publish(mw);
		return false;
	}
	unbind_mw(mw);
	mw->key = (mw->key & ~TAG_MASK) | bind->tag;
	if (!mr)
		return true;
	mw->mr = mr;
	mw->access = bind->access & MW_RIGHTS;
	mw->start = bind->access & URXE_ACCESS_ZERO_BASED ? 0 : bind->addr;
	mw->offset = offset;
	mw->length = bind->length;
	mr->windows++;
	if (mw->type == URXE_MW_TYPE_2) {
		mw->qpn = qp->qpn;
		LIST_INSERT_HEAD(&qp->windows, mw, qp_link);
	}
	mw_publish(mw);
	return true;
}

bool mw_invalidate(struct urxe_qp *qp, uint32_t key)
{
	struct urxe_mw *mw = mw_find(qp->dev, key);

	if (!mw)
		return false;
	if (mw->key != key || mw->type != URXE_MW_TYPE_2 || !mw_serves(mw, qp->qpn)) {
		mw_publish(mw);
		return false;
	}
	unbind_mw(mw);
	return true;
}

void mw_unbind_all(struct urxe_qp *qp)
{
	while (!LIST_EMPTY(&qp->windows))
		unbind_mw(LIST_FIRST(&qp->windows));
}
