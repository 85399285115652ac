/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists of QPs whose order matters: members of multicast groups, and QPs with something to send. */

#include "objects/device.h"
#include "objects/multicast.h"
#include "objects/qp.h"
#include "state/state_records.h"

#define QPN_LEN 4

/* --- Multicast groups. */

static void save_members(struct state_stream *s, const struct mcast_group *group)
{
	struct mcast_member *member;

	state_count(s, group->n_members, QPN_LEN);
	LIST_FOREACH(member, &group->members, group_link)
	{
		state_u24(s, &member->qp->qpn);
	}
}

static struct urxe_qp *read_qp(struct state_device *d)
{
	struct urxe_qp *qp;
	uint32_t qpn;

	state_u24(&d->stream, &qpn);
	qp = state_ok(&d->stream) ? idmap_find(&d->dev->qps, qpn) : NULL;
	state_require(&d->stream, qp);
	return qp;
}

static void attach_group_member(struct state_device *d, struct urxe_qp *qp,
				const struct urxe_gid *gid)
{
	int rc = urxe_mcast_attach(qp, gid);

	if (rc)
		state_fail(&d->stream, rc == -ENOMEM ? rc : -EBADMSG);
}

/* Reads the members of a group, and attaches them, the last one of the stream first: each attached
 * QP becomes the first member. */
static void restore_members(struct state_device *d, const struct urxe_gid *gid)
{
	struct urxe_qp *member[URXE_MAX_MCAST_QPS];
	uint32_t n = state_count(&d->stream, 0, QPN_LEN);

	state_require(&d->stream, n && n <= URXE_MAX_MCAST_QPS);
	for (uint32_t i = 0; i < n && state_ok(&d->stream); i++)
		member[i] = read_qp(d);
	for (; n && state_ok(&d->stream); n--)
		attach_group_member(d, member[n - 1], gid);
}

void group_record(struct state_device *d, const struct mcast_group *group)
{
	struct state_stream *s = &d->stream;
	struct urxe_gid gid = group ? group->gid : (struct urxe_gid){0};

	state_begin(s, STATE_RECORD_GROUP);
	state_bytes(s, gid.raw, sizeof(gid.raw));
	if (group)
		save_members(s, group);
	else
		restore_members(d, &gid);
	state_end(s);
}

/* --- QPs that may have something to send. */

void ready_record(struct state_device *d)
{
	struct state_stream *s = &d->stream;
	struct urxe_qp *qp;
	uint32_t n = 0;

	TAILQ_FOREACH(qp, &d->dev->ready, ready_link)
	{
		n++;
	}
	state_begin(s, STATE_RECORD_READY);
	n = state_count(s, s->restoring ? 0 : n, QPN_LEN);
	if (!s->restoring)
		TAILQ_FOREACH(qp, &d->dev->ready, ready_link)
		{
			state_u24(s, &qp->qpn);
		}
	for (; s->restoring && n && state_ok(s); n--) {
		qp = read_qp(d);
		if (qp)
			qp_schedule(qp);
	}
	state_end(s);
}
