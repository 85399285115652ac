/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses in commands: struct ib_uverbs_ah_attr and ib_uverbs_qp_dest. */
#ifndef URXE_VERBS_UVERBS_ADDRESS_H
#define URXE_VERBS_UVERBS_ADDRESS_H

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>
#include <rxe/types.h>

/*
 * The path to an address, its next hop resolved: -EINVAL without a GRH (RoCE has no
 * other address, A16.4), from a source or through a port that does not exist;
 * -ENETUNREACH and the like from the daemon. Blocks; without the port's lock.
 */
int address_path(const struct ib_uverbs_ah_attr *attr, struct urxe_path *path);
void address_from_dest(struct ib_uverbs_ah_attr *attr, const struct ib_uverbs_qp_dest *dest);
void address_to_dest(struct ib_uverbs_qp_dest *dest, const struct urxe_path *path);

#endif
