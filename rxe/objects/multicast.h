/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast groups: which UD QPs get a datagram that is sent to many (IBA volume 1, 10.5). */
#ifndef URXE_MCAST_H
#define URXE_MCAST_H

#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#define MCAST_BUCKETS 64

struct mcast_group;
LIST_HEAD(mcast_bucket, mcast_group);

struct mcast {
	struct mcast_bucket buckets[MCAST_BUCKETS]; /* by a hash of the address */
	uint32_t n_groups;
};

/* A QP's place in a group. */
struct mcast_member {
	struct urxe_qp *qp;
	struct mcast_group *group;
	LIST_ENTRY(mcast_member) group_link;
	LIST_ENTRY(mcast_member) qp_link;
};
LIST_HEAD(mcast_members, mcast_member);

/* Takes the QP out of all its groups. */
void mcast_leave_all(struct urxe_qp *qp);
/* A datagram from the network: for all members, or for nobody and then dropped. */
void mcast_input(struct urxe_dev *dev, const struct urxe_packet *p);
/* What a QP has sent to a group: the other members on this device get it too, and it itself. */
void mcast_loopback(struct urxe_qp *from, const struct urxe_frame *frame);

#endif
