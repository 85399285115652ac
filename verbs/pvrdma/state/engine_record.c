/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Saves and restores the engine's stream, and checks that its objects are those of the earlier
 * records. */
#include <stdlib.h>

#include "activate.h"
#include "object.h"
#include "state/pvrdma_records.h"

static uint64_t tag_of(void *arg, enum urxe_state_kind kind, void *ctx)
{
	(void)arg, (void)kind;
	return ((struct pv_object *)ctx)->handle;
}

static enum pv_kind kind_of(uint8_t kind)
{
	return kind == URXE_STATE_CQ ? PV_CQ : kind == URXE_STATE_SRQ ? PV_SRQ : PV_QP;
}

static void *find_context(void *arg, const struct urxe_state_object *object)
{
	struct pv_state *st = arg;
	void *found = object->tag > UINT32_MAX ? NULL
					       : pv_object_find(st->dev, kind_of(object->kind),
								(uint32_t)object->tag);

	st->foreign |= !found;
	return found;
}

static int compare_keys(const void *a, const void *b)
{
	const uint32_t first = ((const struct pv_key *)a)->key;
	const uint32_t second = ((const struct pv_key *)b)->key;

	return (first > second) - (first < second);
}

static struct pv_mr *find_key(const struct pv_state *st, uint32_t key)
{
	const struct pv_key wanted = {.key = key};
	const struct pv_key *found =
		st->n_keys ? bsearch(&wanted, st->keys, st->n_keys, sizeof(wanted), compare_keys)
			   : NULL;

	return found ? found->mr : NULL;
}

static bool connect_region(struct pv_state *st, const struct urxe_state_object *object)
{
	struct pv_mr *mr = find_key(st, object->id);

	if (!mr || mr->mr || mr->fast)
		return false;
	if (object->kind == URXE_STATE_MR)
		mr->mr = object->mr;
	else
		mr->fast = object->fast_mr;
	return true;
}

static bool connect_queue(struct pv_state *st, const struct urxe_state_object *object)
{
	struct pv_object *found =
		pv_object_find(st->dev, kind_of(object->kind), (uint32_t)object->tag);
	struct pv_cq *cq = (struct pv_cq *)found;
	struct pv_srq *srq = (struct pv_srq *)found;
	struct pv_qp *qp = (struct pv_qp *)found;

	if (!found)
		return false;
	switch (object->kind) {
	case URXE_STATE_CQ:
		if (cq->cq)
			return false;
		cq->cq = object->cq;
		return true;
	case URXE_STATE_SRQ:
		if (srq->recv.rq)
			return false;
		srq->recv.rq = object->srq;
		return true;
	default:
		if (qp->qp || qp->qpn != object->id)
			return false;
		qp->qp = object->qp;
		qp->recv.rq = urxe_qp_rq(object->qp);
		return true;
	}
}

static void connect_object(void *arg, const struct urxe_state_object *object)
{
	struct pv_state *st = arg;
	bool connected = false;

	switch (object->kind) {
	case URXE_STATE_CQ:
	case URXE_STATE_SRQ:
	case URXE_STATE_QP: connected = connect_queue(st, object); break;
	case URXE_STATE_MR:
	case URXE_STATE_FAST_MR: connected = connect_region(st, object); break;
	}
	st->foreign |= !connected;
}

/* --- Agreement of the records and the engine */

static bool qp_agrees(const struct pv_qp *qp)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	if (!qp->qp)
		return false;
	urxe_qp_query(qp->qp, &attr, &init);
	return init.pd == qp->pd->object.handle && init.send_cq == qp->send_cq->cq &&
	       init.recv_cq == qp->recv_cq->cq && init.srq == (qp->srq ? qp->srq->recv.rq : NULL) &&
	       init.type == (qp->type == PV_QPT_RC ? URXE_QPT_RC : URXE_QPT_UD);
}

static bool objects_agree(const struct pvrdma *dev)
{
	const struct pv_srq *srq;
	const struct pv_mr *mr;
	const struct pv_cq *cq;
	const struct pv_qp *qp;
	uint32_t at;

	for (at = 0; (cq = pv_object_next(dev, PV_CQ, &at));)
		if (!cq->cq)
			return false;
	for (at = 0; (srq = pv_object_next(dev, PV_SRQ, &at));)
		if (!srq->recv.rq)
			return false;
	for (at = 0; (mr = pv_object_next(dev, PV_MR, &at));)
		if ((!mr->mr && !mr->fast) || (mr->is_dma && !mr->mr))
			return false;
	for (at = 0; (qp = pv_object_next(dev, PV_QP, &at));)
		if (!qp_agrees(qp))
			return false;
	return true;
}

/* --- The record */

static void save_engine(struct pv_state *st, uint64_t now)
{
	const struct urxe_state_save how = {.arg = st, .tag = tag_of};
	size_t length = 0;
	uint8_t *bytes = NULL;
	uint32_t n;

	state_fail(&st->stream, urxe_state_save(st->dev->engine, now, &how, &bytes, &length));
	state_require(&st->stream, length <= UINT32_MAX);
	n = state_count(&st->stream, (uint32_t)length, 1);
	state_bytes(&st->stream, bytes, n);
	urxe_state_free(bytes);
}

static void restore_engine(struct pv_state *st, uint64_t now)
{
	const struct urxe_state_restore how = {.arg = st,
					       .context = find_context,
					       .memory = pv_translate_region,
					       .restored = connect_object,
					       .max_bytes = PV_MEMORY_MAX};
	const uint32_t n = state_count(&st->stream, 0, 1);
	const uint8_t *bytes = state_take(&st->stream, n);
	struct pvrdma *dev = st->dev;
	struct urxe_state_attr saved;
	int rc;

	if (!bytes)
		return;
	if (st->n_keys)
		qsort(st->keys, st->n_keys, sizeof(*st->keys), compare_keys);
	rc = urxe_state_read_attr(bytes, n, &saved);
	if (!rc) {
		pv_set_engine_owner(dev, &saved.attr);
		rc = urxe_state_restore(&saved.attr, now, &how, bytes, n, &dev->engine);
	}
	if (!rc && (st->foreign || !objects_agree(dev))) {
		urxe_dev_destroy(dev->engine);
		dev->engine = NULL;
		rc = -EBADMSG;
	}
	dev->active = !rc;
	state_fail(&st->stream, rc);
}

void pv_engine_record(struct pv_state *st, uint64_t now)
{
	struct state_stream *s = &st->stream;
	bool active = st->dev->active;

	state_bool(s, &active);
	if (s->error || !active)
		return;
	if (s->restoring)
		restore_engine(st, now);
	else
		save_engine(st, now);
}
