/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/fast_mr.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/mw.h"
#include "objects/copy_table.h"
#include "objects/qp.h"
#include "objects/references.h"

/* The object whose registered region has this key; NULL: none. */
static struct urxe_fast_mr *find_registered(const struct urxe_dev *dev, uint32_t key)
{
	struct urxe_fast_mr *fast = fast_mr_find(dev, key);

	return fast && fast->registered && fast->key == key ? fast : NULL;
}

int fast_mr_create(struct urxe_dev *dev, uint32_t pd, uint32_t max_extents, uint32_t key,
		   struct urxe_fast_mr **out)
{
	struct urxe_fast_mr *fast;
	struct urxe_mr *mr;
	int rc = -ENOMEM;

	fast = malloc(sizeof(*fast));
	mr = mr_allocate(max_extents);
	if (fast && mr) {
		*fast = (struct urxe_fast_mr){
			.dev = dev,
			.pd = pd,
			.key = key,
			.max_extents = max_extents,
			.mr = mr,
		};
		rc = idmap_add(&dev->fast_mrs, fast->key >> 8, fast);
	}
	if (rc) {
		free(mr);
		free(fast);
		return rc;
	}
	*out = fast;
	return 0;
}

int urxe_fast_mr_alloc(struct urxe_dev *dev, uint32_t pd, uint32_t max_extents,
		       struct urxe_fast_mr **fast)
{
	RECORD_ENTRY(dev, FAST_ALLOC, .value = max_extents, .mw = {.pd = pd});
	return fast_mr_create(dev, pd, max_extents, mr_new_key(dev, true), fast);
}

/* Ends the registration, if there is one. False: a window is bound to the region. */
static bool deregister_region(struct urxe_fast_mr *fast)
{
	if (!fast->registered)
		return true;
	if (fast->mr->windows)
		return false;
	fast->registered = false;
	copy_table_withdraw_key(fast->dev, fast->key);
	end_references_by_key(fast->dev, fast->key);
	return true;
}

int urxe_fast_mr_free(struct urxe_fast_mr *fast)
{
	RECORD_ENTRY(fast->dev, FAST_FREE, .key = fast->key);
	if (!deregister_region(fast))
		return -EBUSY;
	idmap_remove(&fast->dev->fast_mrs, fast->key >> 8);
	mr_free(fast->mr);
	free(fast);
	return 0;
}

uint32_t urxe_fast_mr_key(const struct urxe_fast_mr *fast)
{
	return fast->key;
}

struct urxe_mr *urxe_fast_mr_region(const struct urxe_fast_mr *fast)
{
	return fast->registered ? fast->mr : NULL;
}

/* Fills in the new registration, in the memory of the previous one: a request must not fail for
 * want of memory. */
static void fill_region(struct urxe_fast_mr *fast, const struct urxe_mr_attr *attr)
{
	if (fast->mr->pieces != fast->mr->at_first)
		free(fast->mr->pieces);
	mr_fill(fast->mr, fast->dev, attr);
	fast->key = attr->key;
	fast->registered = true;
	mr_publish(fast->mr);
}

static bool call_page_list(struct urxe_dev *dev, const struct urxe_fast_reg *request,
			   struct urxe_mr_attr *attr)
{
	bool resolved =
		dev->attr.ops->page_list(dev->attr.ctx, request, &attr->extents, &attr->n_extents);

	if (HAS_RECORDING(dev))
		resolved = record_answer(dev, QUESTION_PAGE_LIST, resolved);
	if (HAS_RECORDING(dev) && resolved)
		record_pages(dev, attr->extents, attr->n_extents);
	return resolved;
}

bool fast_mr_register(struct urxe_qp *qp, const struct urxe_fast_reg *request)
{
	struct urxe_fast_mr *fast = fast_mr_find(qp->dev, request->key);
	struct urxe_mr_attr attr = {
		.pd = qp->pd,
		.access = request->access,
		.iova = request->iova,
		.length = request->length,
		.key = request->key,
	};

	if (!fast || fast->registered || fast->pd != qp->pd || !request->length ||
	    !call_page_list(qp->dev, request, &attr))
		return false;
	if (attr.n_extents > fast->max_extents || mr_check_attr(qp->dev, &attr))
		return false;
	fill_region(fast, &attr);
	return true;
}

bool key_release(struct urxe_dev *dev, uint32_t key)
{
	if (!find_registered(dev, key))
		return mw_withdraw_key(dev, key);
	copy_table_withdraw_key(dev, key);
	return copies_ended(dev);
}

bool key_invalidate(struct urxe_qp *qp, uint32_t key)
{
	struct urxe_fast_mr *fast = find_registered(qp->dev, key);

	if (!fast)
		return mw_invalidate(qp, key);
	if (fast->pd == qp->pd && deregister_region(fast))
		return true;
	/* The region stays registered: publishes its rights again, which the caller has withdrawn
	 * (key_release). */
	mr_publish(fast->mr);
	return false;
}
