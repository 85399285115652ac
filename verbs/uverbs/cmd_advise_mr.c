/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ADVISE_MR, for ibv_advise_mr: prefetches the pages of on-demand regions. */
#include <errno.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rxe/rxe.h>

#include "adapter/adapter.h"
#include "memory/uaccess.h"
#include "objects/uverbs_file.h"
#include "objects/verbs_mr.h"
#include "objects/verbs_pd.h"
#include "uverbs/uverbs_command.h"

/* Whether the advice is one of the three that Linux' rxe and mlx5 take. */
static bool is_known(uint64_t advice)
{
	return advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH ||
	       advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE ||
	       advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
}

static const struct mr *find_mr(const struct uverbs_file *file, uint32_t key)
{
	struct object *object;
	uint32_t at = 0;

	while ((object = handle_next(&file->handles, OBJECT_MR, &at)))
		if (urxe_mr_key(((struct mr *)object)->mr) == key)
			return (const struct mr *)object;
	return NULL;
}

/*
 * Sets *start to the program's address of the segment, which must lie in an on-demand region of the
 * PD. `writes`: the region must permit local writes. With adapter.lock. 0 or a negative errno
 * value: that of handle_error() for the PD; -ENOENT: no region has the key; -EPERM: another PD, or
 * no right to write; -EINVAL: not on-demand; -EFAULT: the segment exceeds the region.
 */
static int locate_memory(const struct uverbs_file *file, uint32_t pd, bool writes,
			 const struct ibv_sge *sge, uint64_t *start)
{
	const struct object *owner = handle_find(&file->handles, OBJECT_PD, pd);
	const struct mr *mr = find_mr(file, sge->lkey);
	struct urxe_mr_attr attr;

	if (!owner)
		return handle_error(&file->handles, pd);
	if (!mr)
		return -ENOENT;
	if (&mr->pd->object != owner)
		return -EPERM;
	if (!mr->on_demand)
		return -EINVAL;
	urxe_mr_query(mr->mr, &attr);
	if (writes && !(attr.access & URXE_ACCESS_LOCAL_WRITE))
		return -EPERM;
	if (sge->addr < attr.iova || sge->addr - attr.iova > mr->length ||
	    sge->length > mr->length - (sge->addr - attr.iova))
		return -EFAULT;
	*start = mr->start + (sge->addr - attr.iova);
	return 0;
}

/* Populates the pages of one segment, without adapter.lock, because that takes long. 0; -EIO: the
 * device is closed or dead; the error of locate_memory(); or that of uaccess_populate(). */
static int prefetch(struct uverbs_file *file, const struct ib_uverbs_attr *attrs,
		    const struct ibv_sge *sge)
{
	const uint64_t advice = attrs[UVERBS_ATTR_ADVISE_MR_ADVICE].data;
	bool writes = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uint64_t start = 0;
	int rc = -EIO;

	adapter_lock();
	if (file->live && !adapter.dead)
		rc = locate_memory(file, (uint32_t)attrs[UVERBS_ATTR_ADVISE_MR_PD_HANDLE].data,
				   writes, sge, &start);
	adapter_unlock();
	/* PREFETCH_NO_FAULT asks a device to translate the addresses of pages that are present. The
	 * engine uses the process's own page tables, so there is nothing to do. */
	if (rc || advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT || !sge->length)
		return rc;
	return uaccess_populate(start, sge->length, writes);
}

int cmd_advise_mr(struct uverbs_file *file, const struct ib_uverbs_attr *attrs)
{
	const struct ib_uverbs_attr *list = &attrs[UVERBS_ATTR_ADVISE_MR_SGE_LIST];
	const uint64_t flags = attrs[UVERBS_ATTR_ADVISE_MR_FLAGS].data;
	struct ibv_sge sge;
	int rc = 0;

	if (!list->len || list->len % sizeof(sge) ||
	    flags & ~(uint64_t)IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;
	if (!is_known(attrs[UVERBS_ATTR_ADVISE_MR_ADVICE].data))
		return -EOPNOTSUPP;
	for (uint32_t at = 0; !rc && at < list->len; at += sizeof(sge)) {
		rc = uaccess_read(&sge, list->data + at, sizeof(sge));
		if (!rc)
			rc = prefetch(file, attrs, &sge);
	}
	return rc;
}
