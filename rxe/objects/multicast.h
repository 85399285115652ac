/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast groups: the UD QPs that receive datagrams to a group (IBA volume 1, 10.5). */
#ifndef URXE_OBJECTS_MULTICAST_H
#define URXE_OBJECTS_MULTICAST_H

#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "objects/qp_state.h"

struct mcast_group {
	struct urxe_gid gid;
	struct mcast_members members;
	uint32_t n_members;
	LIST_ENTRY(mcast_group) link;
};

/* The membership of one QP in one group. */
struct mcast_member {
	struct urxe_qp *qp;
	struct mcast_group *group;
	LIST_ENTRY(mcast_member) group_link;
	LIST_ENTRY(mcast_member) qp_link;
};

/* The group with the address; NULL if no QP is in it. */
struct mcast_group *mcast_find_group(struct urxe_dev *dev, const struct urxe_gid *gid);
/* Removes the QP from all its groups. */
void mcast_leave_all(struct urxe_qp *qp);

#endif
