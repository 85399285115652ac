/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/fast_mr.h"

#include <errno.h>
#include <stdlib.h>

#include "direct/direct_table.h"
#include "memory/mw.h"
#include "objects/qp.h"

static struct urxe_fast_mr *find_fast_mr(const struct urxe_dev *dev, uint32_t key)
{
	return idmap_find(&dev->fast_mrs, key >> 8);
}

/* The object whose registered region has this key; NULL: none. */
static struct urxe_fast_mr *find_registered(const struct urxe_dev *dev, uint32_t key)
{
	struct urxe_fast_mr *fast = find_fast_mr(dev, key);

	return fast && fast->mr && fast->key == key ? fast : NULL;
}

int urxe_fast_mr_alloc(struct urxe_dev *dev, uint32_t pd, struct urxe_fast_mr **out)
{
	struct urxe_fast_mr *fast = malloc(sizeof(*fast));
	int rc;

	if (!fast)
		return -ENOMEM;
	*fast = (struct urxe_fast_mr){.dev = dev, .pd = pd, .key = mr_new_key(dev, true)};
	rc = idmap_add(&dev->fast_mrs, fast->key >> 8, fast);
	if (rc)
		free(fast);
	else
		*out = fast;
	return rc;
}

static int deregister_region(struct urxe_fast_mr *fast)
{
	int rc = fast->mr ? urxe_mr_dereg(fast->mr) : 0;

	if (!rc)
		fast->mr = NULL;
	return rc;
}

int urxe_fast_mr_free(struct urxe_fast_mr *fast)
{
	int rc = deregister_region(fast);

	if (rc)
		return rc;
	idmap_remove(&fast->dev->fast_mrs, fast->key >> 8);
	free(fast);
	return 0;
}

uint32_t urxe_fast_mr_key(const struct urxe_fast_mr *fast)
{
	return fast->key;
}

struct urxe_mr *urxe_fast_mr_region(const struct urxe_fast_mr *fast)
{
	return fast->mr;
}

bool fast_mr_register(struct urxe_qp *qp, const struct urxe_fast_reg *request)
{
	struct urxe_fast_mr *fast = find_fast_mr(qp->dev, request->key);
	struct urxe_mr_attr attr = {
		.pd = qp->pd,
		.access = request->access,
		.iova = request->iova,
		.length = request->length,
		.key = request->key,
	};

	if (!fast || fast->mr || fast->pd != qp->pd || !request->length ||
	    !qp->dev->attr.ops->page_list(qp->dev->attr.ctx, request, &attr.extents,
					  &attr.n_extents))
		return false;
	if (mr_register(qp->dev, &attr, &fast->mr))
		return false;
	fast->key = request->key;
	return true;
}

bool key_release(struct urxe_dev *dev, uint32_t key)
{
	if (!find_registered(dev, key))
		return mw_release_key(dev, key);
	direct_withdraw(dev, key);
	return direct_copies_ended(dev);
}

bool key_invalidate(struct urxe_qp *qp, uint32_t key)
{
	struct urxe_fast_mr *fast = find_registered(qp->dev, key);

	if (!fast)
		return mw_invalidate(qp, key);
	return fast->pd == qp->pd && !deregister_region(fast);
}
