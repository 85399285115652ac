/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/multicast.h"

#include <errno.h>
#include <stdlib.h>

#include "objects/device.h"
#include "objects/offload_objects.h"
#include "objects/qp.h"
#include "wire/gid.h"
#include "wire/header_fields.h"

/* The bucket of the address, by a hash of its last bytes: groups differ mostly in these, because
 * the Ethernet multicast address has them too. */
static struct mcast_bucket *bucket_of(struct urxe_dev *dev, const struct urxe_gid *gid)
{
	return &dev->mcast.buckets[get32(gid->raw + 12) * 0x9e3779b9u >> 26];
}
_Static_assert(MCAST_BUCKETS == 1 << (32 - 26), "the hash's range");

struct mcast_group *mcast_find_group(struct urxe_dev *dev, const struct urxe_gid *gid)
{
	struct mcast_group *group;

	LIST_FOREACH(group, bucket_of(dev, gid), link)
	{
		if (gid_equal(&group->gid, gid))
			return group;
	}
	return NULL;
}

static struct mcast_member *find_member(struct urxe_qp *qp, const struct urxe_gid *gid)
{
	struct mcast_member *member;

	LIST_FOREACH(member, &qp->groups, qp_link)
	{
		if (gid_equal(&member->group->gid, gid))
			return member;
	}
	return NULL;
}

static struct mcast_group *make_group(struct urxe_dev *dev, const struct urxe_gid *gid)
{
	struct mcast_group *group;

	if (dev->mcast.n_groups == URXE_MAX_MCAST_GROUPS)
		return NULL;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	group->gid = *gid;
	LIST_INSERT_HEAD(bucket_of(dev, gid), group, link);
	dev->mcast.n_groups++;
	return group;
}

static void free_if_empty(struct urxe_dev *dev, struct mcast_group *group)
{
	if (group->n_members)
		return;
	LIST_REMOVE(group, link);
	dev->mcast.n_groups--;
	free(group);
}

static void remove_member(struct mcast_member *member)
{
	LIST_REMOVE(member, group_link);
	LIST_REMOVE(member, qp_link);
	member->group->n_members--;
	free_if_empty(member->qp->dev, member->group);
	free(member);
}

static void leave_group(struct mcast_member *member)
{
	offload_leave_group(member->qp, &member->group->gid);
	remove_member(member);
}

void mcast_leave_all(struct urxe_qp *qp)
{
	while (!LIST_EMPTY(&qp->groups))
		leave_group(LIST_FIRST(&qp->groups));
}

static struct mcast_member *add_member(struct urxe_qp *qp, struct mcast_group *group)
{
	struct mcast_member *member;

	if (group->n_members == URXE_MAX_MCAST_QPS)
		return NULL;
	member = malloc(sizeof(*member));
	if (!member)
		return NULL;
	*member = (struct mcast_member){.qp = qp, .group = group};
	LIST_INSERT_HEAD(&group->members, member, group_link);
	LIST_INSERT_HEAD(&qp->groups, member, qp_link);
	group->n_members++;
	return member;
}

/*
 * Makes the QP a member. -ENOMEM (also: the group is full) or the HCA's error: then the QP is no
 * member. If the HCA goes during the call, returns 0. urxe_state_save may run while the HCA's call
 * waits, so the QP becomes a member before it.
 */
static int join_group(struct urxe_qp *qp, struct mcast_group *group)
{
	struct mcast_member *member = add_member(qp, group);
	int rc;

	if (!member) {
		free_if_empty(qp->dev, group);
		return -ENOMEM;
	}
	rc = offload_join_group(qp, &group->gid);
	if (rc)
		remove_member(member);
	return rc;
}

int urxe_mcast_attach(struct urxe_qp *qp, const struct urxe_gid *gid)
{
	struct mcast_group *group;

	RECORD_ENTRY(qp->dev, MCAST_ATTACH, .qpn = qp->qpn, .gid = {.gid = *gid});
	if (qp->type != URXE_QPT_UD || !gid_is_multicast(gid))
		return -EINVAL;
	if (find_member(qp, gid))
		return 0;
	group = mcast_find_group(qp->dev, gid);
	if (!group)
		group = make_group(qp->dev, gid);
	if (!group)
		return -ENOMEM;
	return join_group(qp, group);
}

int urxe_mcast_detach(struct urxe_qp *qp, const struct urxe_gid *gid)
{
	struct mcast_member *member = find_member(qp, gid);

	RECORD_ENTRY(qp->dev, MCAST_DETACH, .qpn = qp->qpn, .gid = {.gid = *gid});
	if (!member)
		return -EINVAL;
	leave_group(member);
	return 0;
}

bool urxe_mcast_attached(const struct urxe_qp *qp)
{
	return !LIST_EMPTY(&qp->groups);
}

bool urxe_mcast_any_attached(const struct urxe_dev *dev)
{
	return dev->mcast.n_groups;
}
