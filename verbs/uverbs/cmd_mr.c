/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* REG_MR, REREG_MR, DEREG_MR. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <hca/hca.h>
#include <infiniband/verbs.h>
#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "adapter/adapter.h"
#include "memory/memcheck.h"
#include "memory/uaccess.h"
#include "objects/settle.h"
#include "objects/verbs_mr.h"
#include "objects/verbs_pd.h"
#include "uverbs/uverbs_command.h"

#define REMOTE_CHANGES (URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC)
#define FLUSHES        (URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)
#define ENGINE_ACCESS                                                         \
	(URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_READ | REMOTE_CHANGES | \
	 URXE_ACCESS_MW_BIND | URXE_ACCESS_ZERO_BASED | URXE_ACCESS_ON_DEMAND | FLUSHES)
#define KNOWN_ACCESS (ENGINE_ACCESS | HARMLESS_ACCESS)

/* Does the checks that the kernel's ib_uverbs_reg_mr and ib_check_mr_access make before the look-up
 * of the PD. 0 or -EINVAL. */
static int check_mr_access(const struct ib_uverbs_reg_mr *request)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if ((request->start ^ request->hca_va) & (page - 1))
		return -EINVAL;
	if (request->access_flags & REMOTE_CHANGES &&
	    !(request->access_flags & URXE_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (request->access_flags & ~(uint32_t)KNOWN_ACCESS)
		return -EINVAL;
	return 0;
}

/* Whether the request is for an implicit region: all memory of the process (ibv_reg_mr(3)). */
static bool is_implicit(const struct ib_uverbs_reg_mr *request)
{
	return request->access_flags & URXE_ACCESS_ON_DEMAND && !request->start &&
	       !request->hca_va && request->length == UINT64_MAX;
}

/* Makes the checks of ib_umem_get and the kernel's driver, which follow the look-up of the PD. 0 or
 * -EINVAL. The kernel refuses a region without pages: one of length 0 that begins at the start of a
 * page. Elsewhere a region of length 0 counts as one page. */
static int check_mr_range(const struct ib_uverbs_reg_mr *request)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t end;

	if (is_implicit(request))
		return 0;
	if (__builtin_add_overflow(request->start, request->length, &end) ||
	    end > UINT64_MAX - page)
		return -EINVAL;
	/* The processor reports no address for a fault past UACCESS_END, so the SIGBUS guard could
	 * not handle it. */
	if (request->access_flags & URXE_ACCESS_ON_DEMAND && end > UACCESS_END)
		return -EINVAL;
	if (!request->length)
		return request->start & (page - 1) ? 0 : -EINVAL;
	return request->hca_va + (request->length - 1) < request->hca_va ? -EINVAL : 0;
}

#define EXTENTS 3

/* Lists the memory of the region for the engine, and returns the number of extents. An extent at
 * address NULL is a hole: accesses to it fail. The page at address 0 is a hole, because NULL means
 * that; so are the addresses of an implicit region from UACCESS_END on. */
static uint32_t list_extents(const struct ib_uverbs_reg_mr *request,
			     struct urxe_extent extents[EXTENTS])
{
	uint64_t length = is_implicit(request) ? UACCESS_END : request->length;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = request->start;
	uint32_t n = 0;

	if (!start && length > page) {
		extents[n++] = (struct urxe_extent){NULL, page};
		start = page;
		length -= page;
	}
	extents[n++] = (struct urxe_extent){(void *)(uintptr_t)start, length};
	if (is_implicit(request))
		extents[n++] = (struct urxe_extent){NULL, UINT64_MAX - UACCESS_END};
	return n;
}

static struct urxe_mr_attr engine_attr(const struct ib_uverbs_reg_mr *request, const struct pd *pd,
				       struct urxe_extent extents[EXTENTS])
{
	return (struct urxe_mr_attr){
		.pd = pd->number,
		.access = request->access_flags & ENGINE_ACCESS,
		/* With URXE_ACCESS_ZERO_BASED, requests name offsets in the region (ibv_reg_mr(3)).
		 */
		.iova = request->access_flags & URXE_ACCESS_ZERO_BASED ? 0 : request->hca_va,
		.length = request->length,
		.extents = extents,
		.n_extents = list_extents(request, extents),
	};
}

/* -EOPNOTSUPP: the region is on-demand and an HCA backs the device; else 0. An HCA pins the pages
 * that it accesses, so it can have no on-demand region. With the lock. */
static int check_on_demand(const struct ib_uverbs_reg_mr *request)
{
	return request->access_flags & URXE_ACCESS_ON_DEMAND && adapter.hca.hca ? -EOPNOTSUPP : 0;
}

/* Checks the PD early, for the kernel's order of errors. reg_mr_locked() looks it up again, because
 * the program may deallocate it meanwhile. 0, or the error of command_lock(), check_on_demand() or
 * command_object_error(). */
static int check_mr_pd(const struct command *c, const struct ib_uverbs_reg_mr *request)
{
	int rc = command_lock(c);

	if (rc)
		return rc;
	rc = check_on_demand(request);
	if (!rc && !command_object(c, OBJECT_PD, request->pd_handle))
		rc = command_object_error(c, request->pd_handle);
	adapter_unlock();
	return rc;
}

static void set_range(struct mr *mr, const struct ib_uverbs_reg_mr *request)
{
	mr->start = request->start;
	mr->length = is_implicit(request) ? UACCESS_END : request->length;
	mr->on_demand = request->access_flags & URXE_ACCESS_ON_DEMAND;
}

/* --- The HCA's part of a region: the registration with the HCA. It runs without adapter.lock,
 * because the HCA's driver pins the memory, which takes long. */

struct hca_part {
	struct hca *hca;   /* NULL: the part has not begun */
	struct hca_mr *mr; /* NULL: the HCA has no region, or the engine has taken it over */
	struct urxe_mr_attr attr;
	struct urxe_extent extents[EXTENTS];
	uint32_t key;
	int rc; /* the result of hca_mr_run() */
};

/* Begins the HCA's part (hca_mr_begin). With the lock, which it releases meanwhile. part->mr stays
 * NULL if there is no HCA or no such PD, if the HCA cannot have the region, if memory is lacking,
 * or in a child that a signal handler has forked. */
static void begin_hca_part(const struct command *c, const struct ib_uverbs_reg_mr *request,
			   struct hca_part *part)
{
	const struct pd *pd = (struct pd *)command_object(c, OBJECT_PD, request->pd_handle);
	struct hca *hca;

	if (!pd || !adapter.hca.hca || check_on_demand(request))
		return;
	part->attr = engine_attr(request, pd, part->extents);
	hca = adapter_allow_unlock();
	if (!hca_mr_begin(hca, &part->attr, &part->mr))
		part->hca = hca;
	else
		part->mr = NULL;
	if (command_forbid_unlock(hca))
		*part = (struct hca_part){0};
}

/* Registers the region with the HCA, if one backs the device; sets *part. Ignores errors of the
 * command itself: finish_mr() finds them again, in the kernel's order. */
static void register_hca_part(const struct command *c, const struct ib_uverbs_reg_mr *request,
			      struct hca_part *part)
{
	*part = (struct hca_part){0};
	if (command_lock(c))
		return;
	begin_hca_part(c, request, part);
	adapter_unlock();
	if (part->mr)
		part->rc = hca_mr_run(part->mr, &part->attr, &part->key);
}

/* Whether the engine may still use the part. Not if the HCA has gone meanwhile, or the PD was
 * replaced. With adapter.lock. */
static bool is_current(const struct hca_part *part, const struct pd *pd)
{
	return part->mr && part->hca == adapter.hca.hca && part->attr.pd == pd->number;
}

/* Ends the HCA's part, if it has a region. `kept`: the engine has taken over that region; if not,
 * the HCA deregisters it. */
static void end_hca_part(struct hca_part *part, bool kept)
{
	if (part->mr)
		hca_mr_end(part->mr, kept);
	part->mr = NULL;
}

/* Releases adapter.lock. Deregisters the HCA's region of *part if the engine has not taken it over,
 * and a region of the HCA that REREG_MR has replaced (adapter_unlock_settled). */
static void unlock_after_part(struct hca_part *part)
{
	end_hca_part(part, false);
	adapter_unlock_settled();
	if (part->hca)
		hca_release(part->hca);
}

/* Gives the engine the region, with the HCA's region hca_mr and its key; hca_mr NULL: the region is
 * the engine's alone. *mr NULL: a new region; else it takes the place of *mr. 0 or a negative errno
 * value. */
static int add_region(const struct urxe_mr_attr *attr, struct hca_mr *hca_mr, uint32_t key,
		      struct urxe_mr **mr)
{
	return *mr ? urxe_offload_mr_rereg(mr, attr, hca_mr, key)
		   : urxe_offload_mr_reg(adapter.dev, attr, hca_mr, key, mr);
}

static int reg_with_part(struct hca_part *part, const struct urxe_mr_attr *attr,
			 struct urxe_mr **mr)
{
	int rc = part->rc;

	if (!rc)
		rc = add_region(attr, part->mr, part->key, mr);
	end_hca_part(part, !rc);
	/*
	 * In these cases the region becomes the engine's alone. -EOPNOTSUPP: the HCA cannot have
	 * it. -EEXIST: the HCA's key is 0, or the engine already has a region, window or fast
	 * registration with it. -EFAULT: Linux refuses to pin the memory, such as a file on a disk;
	 * addresses are not bad, because populate() has checked them.
	 */
	if (rc == -EOPNOTSUPP || rc == -EEXIST || rc == -EFAULT)
		rc = add_region(attr, NULL, 0, mr);
	return rc;
}

static int make_mr(const struct command *c, const struct ib_uverbs_reg_mr *request, struct pd *pd,
		   struct hca_part *part, struct mr *mr)
{
	struct urxe_extent extents[EXTENTS];
	struct urxe_mr_attr attr = engine_attr(request, pd, extents);
	int rc;

	mr->pd = pd;
	set_range(mr, request);
	rc = mr_count(mr);
	if (rc)
		return rc;
	rc = is_current(part, pd) ? reg_with_part(part, &attr, &mr->mr)
				  : urxe_mr_reg(adapter.dev, &attr, &mr->mr);
	if (!rc) {
		rc = command_add_object(c, &mr->object, OBJECT_MR, 0);
		if (rc)
			urxe_mr_dereg(mr->mr);
	}
	if (rc) {
		mr_uncount(mr);
		return rc;
	}
	mr->registration = ++adapter.registrations;
	return 0;
}

static int reg_mr_locked(const struct command *c, const struct ib_uverbs_reg_mr *request,
			 struct hca_part *part)
{
	struct pd *pd = (struct pd *)command_object(c, OBJECT_PD, request->pd_handle);
	struct ib_uverbs_reg_mr_resp reply = {0};
	struct mr *mr;
	int rc;

	if (!pd)
		return command_object_error(c, request->pd_handle);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	rc = make_mr(c, request, pd, part, mr);
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

/* Populates the memory of the region, except on-demand memory, which may be missing. If windows may
 * be bound, the memory must be writable, because a window may permit writes (ib_access_writable). 0
 * or -EFAULT. */
static int populate(const struct ib_uverbs_reg_mr *request)
{
	int rc = 0;

	if (!(request->access_flags & URXE_ACCESS_ON_DEMAND))
		rc = uaccess_populate(request->start, request->length,
				      request->access_flags &
					      (URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_MW_BIND));
	if (!rc && !is_implicit(request))
		memcheck_define(request->start, request->length);
	return rc;
}

/* Registers the region with the engine, and writes the response. Does not use command_lock(),
 * because the HCA's part must end even if the device is dead. 0 or a negative errno value. */
static int finish_mr(const struct command *c, const struct ib_uverbs_reg_mr *request,
		     struct hca_part *part)
{
	int rc;

	adapter_lock();
	adapter_defer_destruction();
	rc = c->file->live && !adapter.dead ? reg_mr_locked(c, request, part) : -EIO;
	unlock_after_part(part);
	return rc;
}

/* Populates the pages without adapter.lock, because that takes long. */
int cmd_reg_mr(const struct command *c)
{
	const struct ib_uverbs_reg_mr *request = c->request;
	struct hca_part part;
	int rc = check_mr_access(request);

	if (!rc)
		rc = check_mr_pd(c, request);
	if (!rc)
		rc = check_mr_range(request);
	if (!rc)
		rc = populate(request);
	if (rc)
		return rc;
	register_hca_part(c, request, &part);
	return finish_mr(c, request, &part);
}

#define REREG_ALL \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

/* Sets *to to the region's attributes after the change. Attributes without a flag in the request
 * keep their values. */
static void fill_rereg(struct ib_uverbs_reg_mr *to, const struct ib_uverbs_rereg_mr *request,
		       const struct mr *mr)
{
	bool moves = request->flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct urxe_mr_attr was;
	uint64_t hca_va;

	urxe_mr_query(mr->mr, &was);
	/* was.iova of a zero-based region is 0, and not the hca_va that the program has given. */
	hca_va = was.access & URXE_ACCESS_ZERO_BASED ? mr->start : was.iova;
	*to = (struct ib_uverbs_reg_mr){
		.start = moves ? request->start : mr->start,
		.length = moves ? request->length : was.length,
		.hca_va = moves ? request->hca_va : hca_va,
		.pd_handle = request->flags & IBV_REREG_MR_CHANGE_PD ? request->pd_handle
								     : mr->pd->object.handle,
		.access_flags = request->flags & IBV_REREG_MR_CHANGE_ACCESS ? request->access_flags
									    : was.access,
	};
}

static int rereg_mr_locked(const struct command *c, uint32_t handle,
			   const struct ib_uverbs_reg_mr *to, struct hca_part *part)
{
	struct pd *pd = (struct pd *)command_object(c, OBJECT_PD, to->pd_handle);
	struct mr *mr = (struct mr *)command_object(c, OBJECT_MR, handle);
	struct ib_uverbs_rereg_mr_resp reply = {0};
	struct urxe_extent extents[EXTENTS];
	struct urxe_mr_attr attr;
	struct mr *before, after;
	int rc;

	if (!mr)
		return command_object_error(c, handle);
	if (!pd)
		return command_object_error(c, to->pd_handle);
	attr = engine_attr(to, pd, extents);
	before = malloc(sizeof(*before));
	if (!before)
		return -ENOMEM;
	*before = after = *mr;
	set_range(&after, to);
	rc = mr_count(&after);
	if (rc) {
		free(before);
		return rc;
	}
	rc = is_current(part, pd) ? reg_with_part(part, &attr, &mr->mr)
				  : urxe_mr_rereg(&mr->mr, &attr);
	if (rc) {
		mr_uncount(&after);
		free(before);
		return rc;
	}
	mr_release(before);
	mr->pd->object.users--;
	mr->pd = pd;
	mr->pd->object.users++;
	set_range(mr, to);
	mr->registration = ++adapter.registrations;
	reply.lkey = reply.rkey = urxe_mr_key(mr->mr);
	return command_reply(c, &reply, sizeof(reply));
}

static int check_rereg(const struct ib_uverbs_rereg_mr *request)
{
	if (!request->flags)
		return -EINVAL;
	return request->flags & ~(uint32_t)REREG_ALL ? -EOPNOTSUPP : 0;
}

/* Changes memory, PD or access of a region. librxe has no function for this command: its
 * ibv_rereg_mr fails. A region that the HCA has gets a new key; others keep theirs. The lock is
 * free while pages are populated; if two threads change one region, the last one wins. */
int cmd_rereg_mr(const struct command *c)
{
	const struct ib_uverbs_rereg_mr *request = c->request;
	struct ib_uverbs_reg_mr to;
	struct hca_part part = {0};
	const struct mr *mr;
	bool by_hca = false;
	int rc = check_rereg(request);

	if (!rc)
		rc = command_lock(c);
	if (rc)
		return rc;
	mr = (struct mr *)command_object(c, OBJECT_MR, request->mr_handle);
	if (mr) {
		fill_rereg(&to, request, mr);
		rc = check_on_demand(&to);
		by_hca = urxe_offload_has_mr(mr->mr);
	} else {
		rc = command_object_error(c, request->mr_handle);
	}
	adapter_unlock();
	if (!rc)
		rc = check_mr_access(&to);
	if (!rc)
		rc = check_mr_range(&to);
	if (!rc)
		rc = populate(&to);
	if (rc)
		return rc;
	if (by_hca)
		register_hca_part(c, &to, &part);
	adapter_lock();
	adapter_defer_destruction();
	rc = c->file->live && !adapter.dead ? rereg_mr_locked(c, request->mr_handle, &to, &part)
					    : -EIO;
	unlock_after_part(&part);
	return rc;
}

int cmd_dereg_mr(const struct command *c)
{
	return mr_dereg((struct mr *)c->object);
}
