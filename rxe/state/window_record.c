/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows. Their records follow those of the regions and QPs to which they are bound. */
#include <errno.h>

#include "memory/mr.h"
#include "memory/mw.h"
#include "state/state_records.h"

/* Restoring: whether the window's rights and bytes are within those of the region. Does not check
 * `start`, nor ZERO_BASED of type 1. */
static bool is_bindable(const struct urxe_mw *mw, const struct urxe_mr *mr,
			const struct urxe_qp *qp)
{
	return mw_region_permits(mw, mr, mw->access) && !(mw->access & ~(uint32_t)MW_RIGHTS) &&
	       mw->offset <= mr->length && mw->length && mw->length <= mr->length - mw->offset &&
	       (mw->type == URXE_MW_TYPE_1 || (qp && qp->pd == mw->pd));
}

static void bind_window(struct state_device *d, struct urxe_mw *mw, uint32_t mr_key)
{
	struct urxe_mr *mr = mr_find(d->dev, mr_key);
	struct urxe_qp *qp = idmap_find(&d->dev->qps, mw->qpn);

	state_require(&d->stream, is_bindable(mw, mr, qp));
	if (!state_ok(&d->stream))
		return;
	mw->mr = mr;
	mr->windows++;
	if (mw->type == URXE_MW_TYPE_2)
		LIST_INSERT_HEAD(&qp->windows, mw, qp_link);
}

static void binding_fields(struct state_device *d, struct urxe_mw *mw)
{
	struct state_stream *s = &d->stream;
	uint32_t mr_key = mw->mr ? mw->mr->key : 0;

	state_u32(s, &mr_key);
	if (!mr_key)
		return;
	state_u32(s, &mw->access);
	state_u64s(s, &mw->start, &mw->offset, &mw->length);
	state_u24(s, &mw->qpn);
	if (s->restoring && state_ok(s))
		bind_window(d, mw, mr_key);
}

void mw_record(struct state_device *d, struct urxe_mw *mw)
{
	struct state_stream *s = &d->stream;
	struct urxe_mw_attr attr = {0};
	int rc;

	if (mw)
		attr = (struct urxe_mw_attr){.pd = mw->pd, .type = mw->type, .key = mw->key};
	state_begin(s, STATE_RECORD_MW);
	state_u32(s, &attr.pd);
	state_u8(s, &attr.type);
	state_u32(s, &attr.key);
	state_require(s, attr.key);
	if (s->restoring && state_ok(s)) {
		rc = urxe_mw_alloc(d->dev, &attr, &mw);
		if (rc)
			state_fail(s, rc == -ENOMEM ? rc : -EBADMSG);
	}
	if (!state_ok(s))
		return;
	binding_fields(d, mw);
	state_end(s);
	if (s->restoring)
		object_restored(d, &(struct urxe_state_object){
					   .kind = URXE_STATE_MW, .id = attr.key, .mw = mw});
}
