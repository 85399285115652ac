/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A QP's transmit rate, and the CNP that is due. */
#include "congestion/dcqcn.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "state/state_records.h"

/* Longest packet whose length DCQCN notes, bytes. */
#define LONGEST 65536

/* Restoring: lowers a rate above that of this device's link to the link's rate. */
static void rate_field(struct state_stream *s, const struct urxe_qp *qp, uint64_t *bps)
{
	const uint64_t most = qp->dev->dcqcn.link_bps;

	state_u64(s, bps);
	if (s->restoring && *bps > most)
		*bps = most;
}

static void dcqcn_fields(struct state_stream *s, const struct urxe_qp *qp, struct dcqcn *d)
{
	rate_field(s, qp, &d->current_bps);
	rate_field(s, qp, &d->target_bps);
	state_times(s, &d->alpha_at, &d->increase_at, &d->raise_at);
	d->cut_at = 0; /* not in the stream: the saved device loses it, too, so that it equals the
			  restored one */
	state_u32_max(s, &d->alpha, DCQCN_ALPHA_ONE);
	state_u32s(s, &d->bytes, &d->by_time, &d->by_size);
	state_u32_max(s, &d->len, LONGEST);
}

static void cnp_fields(struct state_stream *s, struct urxe_qp *qp)
{
	state_bool(s, &qp->cnp_due);
	state_u24(s, &qp->cnp.dest_qpn);
	state_time(s, &qp->cnp.next);
	path_fields(s, &qp->cnp.path);
}

void congestion_record(struct state_stream *s, struct urxe_qp *qp)
{
	struct pace *pace = &qp->pace;

	state_begin(s, STATE_RECORD_QP_CONGESTION);
	state_bool(s, &qp->paced);
	state_time(s, &pace->next);
	if (s->restoring)
		pace->limit_bps = qp->attr.rate_limit * UINT64_C(1000);
	timer_field(s, qp, &pace->timer);
	dcqcn_fields(s, qp, &pace->dcqcn);
	cnp_fields(s, qp);
	state_end(s);
}
