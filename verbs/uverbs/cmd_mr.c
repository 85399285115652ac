/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* REG_MR, REREG_MR, DEREG_MR. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rxe/rxe.h>

#include "memory/mr.h"
#include "memory/mr_index.h"
#include "memory/uaccess.h"
#include "port/port.h"
#include "samehost/peer.h"
#include "uverbs/command.h"
#include "uverbs/pd.h"

#define REMOTE_CHANGES (URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC)
#define FLUSHES        (URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)
#define ENGINE_ACCESS                                                         \
	(URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_READ | REMOTE_CHANGES | \
	 URXE_ACCESS_MW_BIND | URXE_ACCESS_ZERO_BASED | FLUSHES)
/* Hints that change nothing here. */
#define HARMLESS_ACCESS (IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define KNOWN_ACCESS    (ENGINE_ACCESS | HARMLESS_ACCESS | IBV_ACCESS_ON_DEMAND)

/* The region has ended, but peers may still copy: its memory counts as registered meanwhile. */
static void release(struct mr *mr)
{
	LIST_INSERT_HEAD(&port.released_mrs, mr, released_link);
	if (peer_settled())
		mr_settled();
}

void mr_settled(void)
{
	struct mr *mr;

	while ((mr = LIST_FIRST(&port.released_mrs))) {
		LIST_REMOVE(mr, released_link);
		registered_remove(mr->start, mr->length);
		free(mr);
	}
}

static int dereg(struct mr *mr)
{
	int rc = urxe_mr_dereg(mr->mr);

	if (rc)
		return rc;
	mr->pd->object.users--;
	handle_remove(&mr->object.file->handles, &mr->object);
	release(mr);
	return 0;
}

/* No window is left then that could be bound to it. */
void mr_destroy(struct object *object)
{
	dereg((struct mr *)object);
}

void mr_unmap(struct mr *mr, const struct urxe_extent *bytes)
{
	/* Without the memory to know which, none of it. */
	if (urxe_mr_unmap(mr->mr, bytes))
		urxe_mr_unmap_all(mr->mr);
}

/* What the kernel's ib_uverbs_reg_mr and ib_check_mr_access look at before the domain. */
static int check_access(const struct ib_uverbs_reg_mr *request)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if ((request->start ^ request->hca_va) & (page - 1))
		return -EINVAL;
	if (request->access_flags & REMOTE_CHANGES &&
	    !(request->access_flags & URXE_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (request->access_flags & ~(uint32_t)KNOWN_ACCESS)
		return -EINVAL;
	return request->access_flags & IBV_ACCESS_ON_DEMAND ? -EOPNOTSUPP : 0;
}

/* And behind it, in ib_umem_get and the driver. */
static int check_range(const struct ib_uverbs_reg_mr *request)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t end;

	if (!request->length || __builtin_add_overflow(request->start, request->length, &end) ||
	    end > UINT64_MAX - page || request->hca_va + (request->length - 1) < request->hca_va)
		return -EINVAL;
	return 0;
}

static struct urxe_mr_attr engine_attr(const struct ib_uverbs_reg_mr *request, const struct pd *pd,
				       struct urxe_extent *extent)
{
	*extent = (struct urxe_extent){(void *)(uintptr_t)request->start, request->length};
	return (struct urxe_mr_attr){
		.pd = pd->number,
		.access = request->access_flags & ENGINE_ACCESS,
		.iova = request->hca_va,
		.length = request->length,
		.extents = extent,
		.n_extents = 1,
	};
}

/* It may go before the region comes. */
static int check_pd(const struct command *c, uint32_t handle)
{
	int rc = command_lock(c);

	if (rc)
		return rc;
	if (!command_object(c, OBJECT_PD, handle))
		rc = command_no_object(c, handle);
	port_unlock();
	return rc;
}

static int make(const struct command *c, const struct ib_uverbs_reg_mr *request, struct pd *pd,
		struct mr *mr)
{
	struct urxe_extent extent;
	struct urxe_mr_attr attr = engine_attr(request, pd, &extent);
	int rc;

	mr->pd = pd;
	mr->start = request->start;
	mr->length = request->length;
	rc = registered_add(mr->start, mr->length);
	if (rc)
		return rc;
	rc = urxe_mr_reg(port.dev, &attr, &mr->mr);
	if (!rc) {
		rc = command_name(c, &mr->object, OBJECT_MR, 0);
		if (rc)
			urxe_mr_dereg(mr->mr);
	}
	if (rc) {
		registered_remove(mr->start, mr->length);
		return rc;
	}
	mr->number = ++port.registrations;
	return 0;
}

static int reg(const struct command *c, const struct ib_uverbs_reg_mr *request)
{
	struct pd *pd = (struct pd *)command_object(c, OBJECT_PD, request->pd_handle);
	struct ib_uverbs_reg_mr_resp reply = {0};
	struct mr *mr;
	int rc;

	if (!pd)
		return command_no_object(c, request->pd_handle);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	rc = make(c, request, pd, mr);
	if (rc) {
		free(mr);
		return rc;
	}
	pd->object.users++;
	reply.mr_handle = mr->object.handle;
	reply.lkey = reply.rkey = urxe_mr_key(mr->mr);
	rc = command_reply(c, &reply, sizeof(reply));
	if (rc)
		mr_destroy(&mr->object);
	return rc;
}

/* Touching the pages takes its time, so without the lock. */
int cmd_reg_mr(const struct command *c)
{
	struct ib_uverbs_reg_mr request;
	int rc = command_read(c, &request, sizeof(request));

	if (!rc)
		rc = check_access(&request);
	if (!rc)
		rc = check_pd(c, request.pd_handle);
	if (!rc)
		rc = check_range(&request);
	if (!rc)
		rc = user_populate(request.start, request.length,
				   request.access_flags & URXE_ACCESS_LOCAL_WRITE);
	if (!rc)
		rc = command_lock(c);
	if (rc)
		return rc;
	rc = reg(c, &request);
	port_unlock();
	return rc;
}

#define REREG_ALL \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

/* The region as it is to be: what is not to change is as it was. */
static void fill_rereg(struct ib_uverbs_reg_mr *to, const struct ib_uverbs_rereg_mr *request,
		       const struct mr *mr)
{
	bool moves = request->flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct urxe_mr_attr was;

	urxe_mr_query(mr->mr, &was);
	*to = (struct ib_uverbs_reg_mr){
		.start = moves ? request->start : mr->start,
		.length = moves ? request->length : was.length,
		.hca_va = moves ? request->hca_va : was.iova,
		.pd_handle = request->flags & IBV_REREG_MR_CHANGE_PD ? request->pd_handle
								     : mr->pd->object.handle,
		.access_flags = request->flags & IBV_REREG_MR_CHANGE_ACCESS ? request->access_flags
									    : was.access,
	};
}

static int rereg(const struct command *c, uint32_t handle, const struct ib_uverbs_reg_mr *to)
{
	struct pd *pd = (struct pd *)command_object(c, OBJECT_PD, to->pd_handle);
	struct mr *mr = (struct mr *)command_object(c, OBJECT_MR, handle);
	struct ib_uverbs_rereg_mr_resp reply = {0};
	struct urxe_extent extent;
	struct urxe_mr_attr attr;
	struct mr *before;
	int rc;

	if (!mr)
		return command_no_object(c, handle);
	if (!pd)
		return command_no_object(c, to->pd_handle);
	attr = engine_attr(to, pd, &extent);
	before = malloc(sizeof(*before));
	if (!before)
		return -ENOMEM;
	*before = *mr;
	rc = registered_add(to->start, to->length);
	if (rc) {
		free(before);
		return rc;
	}
	rc = urxe_mr_rereg(&mr->mr, &attr);
	if (rc) {
		registered_remove(to->start, to->length);
		free(before);
		return rc;
	}
	release(before);
	mr->pd->object.users--;
	mr->pd = pd;
	mr->pd->object.users++;
	mr->start = to->start;
	mr->length = to->length;
	mr->number = ++port.registrations;
	reply.lkey = reply.rkey = urxe_mr_key(mr->mr);
	return command_reply(c, &reply, sizeof(reply));
}

static int read_rereg(const struct command *c, struct ib_uverbs_rereg_mr *request)
{
	int rc = command_read(c, request, sizeof(*request));

	if (rc)
		return rc;
	if (!request->flags)
		return -EINVAL;
	return request->flags & ~(uint32_t)REREG_ALL ? -EOPNOTSUPP : 0;
}

/*
 * librxe has no call for it: its ibv_rereg_mr refuses. The keys stay the same. The lock is
 * not held while pages are touched, and of two threads that change one region the last wins.
 */
int cmd_rereg_mr(const struct command *c)
{
	struct ib_uverbs_rereg_mr request;
	struct ib_uverbs_reg_mr to;
	const struct mr *mr;
	int rc = read_rereg(c, &request);

	if (!rc)
		rc = command_lock(c);
	if (rc)
		return rc;
	mr = (struct mr *)command_object(c, OBJECT_MR, request.mr_handle);
	if (mr)
		fill_rereg(&to, &request, mr);
	else
		rc = command_no_object(c, request.mr_handle);
	port_unlock();
	if (!rc)
		rc = check_access(&to);
	if (!rc)
		rc = check_range(&to);
	if (!rc)
		rc = user_populate(to.start, to.length, to.access_flags & URXE_ACCESS_LOCAL_WRITE);
	if (!rc)
		rc = command_lock(c);
	if (rc)
		return rc;
	rc = rereg(c, request.mr_handle, &to);
	port_unlock_settled();
	return rc;
}

int cmd_dereg_mr(const struct command *c)
{
	struct ib_uverbs_dereg_mr request;
	struct mr *mr;
	int rc = command_read(c, &request, sizeof(request));

	if (rc)
		return rc;
	mr = (struct mr *)command_object(c, OBJECT_MR, request.mr_handle);
	return mr ? dereg(mr) : command_no_object(c, request.mr_handle);
}
