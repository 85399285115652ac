/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/rebuild.h"
#include "memory/uaccess.h"
#include "objects/uverbs_file.h"
#include "objects/verbs_ah.h"
#include "objects/verbs_mr.h"
#include "objects/verbs_mw.h"
#include "objects/verbs_pd.h"
#include "poll/poll_hook.h"
#include "queues/publish.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"

/* --- While the engine is restored. */

static struct object *find_by_tag(const struct rebuilt *r, const struct urxe_state_object *object)
{
	static const enum object_type types[] = {[URXE_STATE_CQ] = OBJECT_CQ,
						 [URXE_STATE_SRQ] = OBJECT_SRQ,
						 [URXE_STATE_QP] = OBJECT_QP};

	return rebuilt_object(r, types[object->kind], (uint32_t)(object->tag >> 32),
			      (uint32_t)object->tag);
}

static void *find_context(void *arg, const struct urxe_state_object *object)
{
	struct joining *j = arg;
	struct object *found = find_by_tag(j->rebuilt, object);

	if (!found)
		j->error = -EBADMSG;
	return found;
}

static int check_extent(const struct mr *mr, const struct urxe_extent *extent, uint32_t access)
{
	uint64_t start = (uintptr_t)extent->addr;

	/* An extent without an address: the program had unmapped these bytes. */
	if (!start)
		return 0;
	if (start < mr->start || start - mr->start > mr->length ||
	    extent->length > mr->length - (start - mr->start))
		return -EBADMSG;
	if (access & URXE_ACCESS_ON_DEMAND || !mr->was_whole)
		return 0;
	return uaccess_is_mapped(start, extent->length) ? 0 : -EFAULT;
}

/*
 * urxe_state_restore.memory: checks that the region's memory is mapped where it was before the
 * checkpoint, except of an on-demand region and of one that was not whole (mr_record.whole). The
 * program may have protected the memory, or truncated its file: accesses then fail, as before the
 * checkpoint. 0; -EFAULT: memory is missing; -EBADMSG: the image has no such region, or an extent
 * lies outside the region.
 */
static int find_memory(void *arg, struct urxe_state_region *region)
{
	const struct joining *j = arg;
	const struct mr *mr = (struct mr *)rebuilt_mr(j->rebuilt, region->key);
	int rc = mr ? 0 : -EBADMSG;

	for (uint32_t i = 0; !rc && i < region->n_extents; i++)
		rc = check_extent(mr, &region->extents[i], region->access);
	if (rc == -EFAULT)
		checkpoint_fail(rc, "memory region %#x: its memory at %#llx is missing",
				region->key, (unsigned long long)mr->start);
	return rc;
}

static struct object *find_restored(const struct rebuilt *r, const struct urxe_state_object *object)
{
	switch (object->kind) {
	case URXE_STATE_MR: return rebuilt_mr(r, object->id);
	case URXE_STATE_MW: return rebuilt_mw(r, object->id);
	case URXE_STATE_FAST_MR: return NULL;
	default: return find_by_tag(r, object);
	}
}

/* Makes *object the engine's object of `ours`. False: `ours` had one already. */
static bool join_object(struct object *ours, const struct urxe_state_object *object)
{
	void *before;

	if (ours->type == OBJECT_CQ) {
		before = ((struct cq *)ours)->cq;
		((struct cq *)ours)->cq = object->cq;
	} else if (ours->type == OBJECT_SRQ) {
		before = ((struct srq *)ours)->recv.rq;
		((struct srq *)ours)->recv.rq = object->srq;
	} else if (ours->type == OBJECT_QP) {
		before = ((struct qp *)ours)->qp;
		((struct qp *)ours)->qp = object->qp;
		((struct qp *)ours)->recv.rq = urxe_qp_rq(object->qp);
	} else if (ours->type == OBJECT_MR) {
		before = ((struct mr *)ours)->mr;
		((struct mr *)ours)->mr = object->mr;
	} else {
		before = ((struct mw *)ours)->mw;
		((struct mw *)ours)->mw = object->mw;
	}
	return !before;
}

static void join_restored(void *arg, const struct urxe_state_object *object)
{
	struct joining *j = arg;
	struct object *ours = find_restored(j->rebuilt, object);

	if (!ours || !join_object(ours, object))
		j->error = -EBADMSG;
}

struct urxe_state_restore join_callbacks(struct joining *joining)
{
	return (struct urxe_state_restore){
		.arg = joining,
		.context = find_context,
		.memory = find_memory,
		.restored = join_restored,
	};
}

/* --- Checks of single objects. */

static int check_address(const struct joining *j, uint32_t index, const char *kind, uint32_t number)
{
	const struct vnic_attach_gid *was = &j->rebuilt->image->process.gids[index];
	const struct vnic_attach_gid *is = &adapter.welcome.port.gids[index];

	if (was->valid == is->valid && !memcmp(was->raw, is->raw, sizeof(is->raw)) &&
	    was->vlan == is->vlan && was->v1 == is->v1)
		return 0;
	return checkpoint_fail(
		-EADDRNOTAVAIL,
		"%s %#x: the device does not have its source address at GID index %u", kind, number,
		index);
}

static int check_pkey(uint32_t qpn, uint16_t index)
{
	const uint16_t was = urxe_pkey(adapter.dev, index);

	if (was == adapter.welcome.pkeys[index])
		return 0;
	return checkpoint_fail(-EADDRNOTAVAIL,
			       "queue pair %#x: the device does not have its P_Key %#x at index %u",
			       qpn, was, index);
}

/* Whether the ring's cursor agrees with the engine's count of retired requests: the requests
 * between the two must fit in the ring. */
static bool fits_engine(const struct work_queue *wq, uint32_t retired)
{
	return wq->cursor - wq->base - retired <= wq->ring.mask;
}

static int check_qp(const struct joining *j, const struct qp *qp)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	int rc;

	if (!qp->qp)
		return -EBADMSG;
	urxe_qp_query(qp->qp, &attr, &init);
	if (urxe_qp_qpn(qp->qp) != qp->qpn || init.type != qp->limits.qp_type ||
	    init.pd != qp->pd->number || init.send_cq != qp->send_cq->cq ||
	    init.recv_cq != qp->recv_cq->cq || init.srq != (qp->srq ? qp->srq->recv.rq : NULL))
		return -EBADMSG;
	if (!fits_engine(&qp->sq, urxe_sq_retired(qp->qp)) ||
	    (!qp->srq && !fits_engine(&qp->recv.wq, urxe_rq_retired(qp->recv.rq))))
		return -EBADMSG;
	/* In other states the queue pair receives nothing, and sends only answers that are due. */
	if ((attr.state < URXE_QPS_RTR || attr.state > URXE_QPS_SQE) &&
	    !urxe_qp_has_answers(qp->qp))
		return 0;
	rc = check_pkey(qp->qpn, attr.pkey_index);
	if (rc || init.type == URXE_QPT_UD)
		return rc;
	return attr.path.sgid_index < VNIC_ATTACH_GIDS
		       ? check_address(j, attr.path.sgid_index, "queue pair", qp->qpn)
		       : -EBADMSG;
}

static int check_mr(const struct mr *mr)
{
	struct urxe_mr_attr attr;

	if (!mr->mr)
		return -EBADMSG;
	urxe_mr_query(mr->mr, &attr);
	return attr.pd == mr->pd->number ? 0 : -EBADMSG;
}

static int check_object(const struct joining *j, struct object *object)
{
	const struct srq *srq = (const struct srq *)object;

	switch (object->type) {
	case OBJECT_QP: return check_qp(j, (const struct qp *)object);
	case OBJECT_MR: return check_mr((const struct mr *)object);
	case OBJECT_MW: return ((const struct mw *)object)->mw ? 0 : -EBADMSG;
	case OBJECT_CQ: return ((const struct cq *)object)->cq ? 0 : -EBADMSG;
	case OBJECT_SRQ:
		return srq->recv.rq && fits_engine(&srq->recv.wq, urxe_rq_retired(srq->recv.rq))
			       ? 0
			       : -EBADMSG;
	case OBJECT_AH:
		return check_address(j, ((const struct ah *)object)->path.sgid_index,
				     "address handle", object->handle);
	default: return 0;
	}
}

/* --- Additions to the adapter. */

/*
 * Makes room for the QP's QPN in adapter.leases. If no leased block contains the QPN, because an
 * HCA has chosen it, has the daemon pass the QPN's packets to this process. 0; -EEXIST: another
 * process of this host has the QPN; -EBADMSG: the daemon says that the QPN is invalid; or another
 * error of told_qp_add_locked().
 */
static int add_number(struct qp *qp)
{
	int rc = leases_reserve(&adapter.leases, qp->qpn);

	if (rc || !adapter.leases.by_qpn[VNIC_BLOCK(qp->qpn)]->unleased)
		return rc;
	rc = told_qp_add_locked(adapter.nic, qp->qpn, &qp->added);
	if (rc == -EINVAL)
		return -EBADMSG;
	return rc == -EEXIST ? checkpoint_fail(rc,
					       "queue pair %#x: another process of this host has "
					       "its number",
					       qp->qpn)
			     : rc;
}

static int add_qp(struct qp *qp, const struct qp_record *record)
{
	int rc;

	if (leases_find(&adapter.leases, qp->qpn))
		return -EBADMSG;
	rc = add_number(qp);
	if (rc)
		return rc;
	if (record->connected) {
		qp->remote = told_qp_restore(qp->qpn, record->dgid, record->remote_qpn);
		if (!qp->remote)
			return -ENOMEM;
	}
	leases_assign(&adapter.leases, qp->qpn, qp);
	return 0;
}

static int add_region(const struct joining *j, struct object *object)
{
	struct mr *mr = (struct mr *)object;
	struct urxe_mr_attr attr;
	int rc;

	(void)j;
	urxe_mr_query(mr->mr, &attr);
	mr->on_demand = attr.access & URXE_ACCESS_ON_DEMAND;
	rc = mr_count(mr);
	if (!rc)
		mr->registration = ++adapter.registrations;
	return rc;
}

/* Posts the requests that are in the send ring without a doorbell. Notes for qp_publish that the QP
 * may be in the error state. */
static int start_qp(const struct joining *j, struct object *object)
{
	struct qp *qp = (struct qp *)object;

	(void)j;
	if (work_queue_posted(&qp->sq))
		qp_doorbell(qp);
	qp_failed(qp);
	return 0;
}

static struct uverbs_file *file_at(const struct joining *j, uint32_t i)
{
	return j->rebuilt->contexts[i].file;
}

typedef int object_fn(const struct joining *j, struct object *object);

static int for_each_object(const struct joining *j, object_fn *fn, enum object_type type)
{
	int rc = 0;

	for (uint32_t i = 0; i < j->rebuilt->image->n[CHECKPOINT_CONTEXT]; i++) {
		struct object *object;
		uint32_t at = 0;

		while (!rc && (object = handle_next(&file_at(j, i)->handles, type, &at)))
			rc = fn(j, object);
	}
	return rc;
}

static int check_all(const struct joining *j)
{
	int rc = 0;

	for (enum object_type type = OBJECT_PD; !rc && type <= OBJECT_AH; type++)
		rc = for_each_object(j, check_object, type);
	return rc;
}

static int add_qps(const struct joining *j)
{
	const struct image *image = j->rebuilt->image;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < image->n[CHECKPOINT_QP]; i++) {
		const struct qp_record *record = &image->qps[i];

		rc = add_qp((struct qp *)rebuilt_object(j->rebuilt, OBJECT_QP,
							record->object.context,
							record->object.handle),
			    record);
	}
	return rc;
}

/* --- librxe's functions. */

#define SET_HOOK(file, hooks, name) \
	((file)->name = (__typeof__((file)->name))(uintptr_t)(hooks)->name)

static int set_hooks(const struct joining *j, uint32_t context)
{
	const struct hooks_record *hooks = &j->rebuilt->image->contexts[context].hooks;
	struct uverbs_file *file = file_at(j, context);
	struct object *cq;
	uint32_t at = 0;

	SET_HOOK(file, hooks, poll_cq);
	SET_HOOK(file, hooks, post_recv);
	SET_HOOK(file, hooks, post_srq_recv);
	SET_HOOK(file, hooks, start_poll);
	SET_HOOK(file, hooks, next_poll);
	SET_HOOK(file, hooks, end_poll);
	cq = handle_next(&file->handles, OBJECT_CQ, &at);
	if (!cq || !file->poll_cq || poll_hook_is_installed(file, cq->user_handle))
		return 0;
	return checkpoint_fail(-EFAULT, "the objects of librxe are missing, or librxe and liburxe "
					"have other addresses than in the saved process");
}

static int add_contexts(const struct joining *j)
{
	int rc = 0;

	for (uint32_t i = j->rebuilt->image->n[CHECKPOINT_CONTEXT]; !rc && i-- > 0;) {
		rc = set_hooks(j, i);
		file_at(j, i)->live = true;
		file_at(j, i)->fork_generation = adapter_fork_generation;
		LIST_INSERT_HEAD(&adapter.files, file_at(j, i), link);
	}
	return rc;
}

int join_add_objects(struct joining *j)
{
	int rc = j->error;

	if (!rc)
		rc = check_all(j);
	if (!rc)
		rc = for_each_object(j, add_region, OBJECT_MR);
	if (!rc)
		rc = add_qps(j);
	if (!rc)
		rc = add_contexts(j);
	if (rc)
		return rc;
	adapter.last_pd = j->rebuilt->image->process.last_pd;
	for_each_object(j, start_qp, OBJECT_QP);
	adapter_publish();
	return 0;
}

static int remove_region(const struct joining *j, struct object *object)
{
	struct mr *mr = (struct mr *)object;

	(void)j;
	if (mr->registration)
		mr_uncount(mr);
	mr->registration = 0;
	return 0;
}

void join_undo(struct joining *j)
{
	for (uint32_t i = 0; i < j->rebuilt->image->n[CHECKPOINT_CONTEXT]; i++) {
		struct uverbs_file *file = file_at(j, i);

		if (file->live)
			LIST_REMOVE(file, link);
		file->live = false;
	}
	for_each_object(j, remove_region, OBJECT_MR);
	told_qp_forget_all();
}
