/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Converts addresses in commands: struct ib_uverbs_ah_attr and ib_uverbs_qp_dest. */
#ifndef URXE_VERBS_UVERBS_UVERBS_ADDRESS_H
#define URXE_VERBS_UVERBS_UVERBS_ADDRESS_H

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>
#include <rxe/types.h>

/*
 * Resolves the path to an address, with the next hop from the daemon. 0; -EINVAL: the address has
 * no GRH, which RoCE requires (A16.4), or the port does not exist; the error of
 * port_check_source(); or an error of the daemon. If the daemon knows no next hop, returns 0 with
 * dmac 0, and sets *hop_error to -ENETUNREACH or -EHOSTUNREACH; else *hop_error is 0. With dmac 0
 * only an HCA can use the path: it finds next hops itself. Blocks; without adapter.lock.
 */
int address_path(const struct ib_uverbs_ah_attr *attr, struct urxe_path *path, int *hop_error);
/* Sets *attr to the address in a MODIFY_QP, in the form that address_path() takes. */
void address_from_dest(struct ib_uverbs_ah_attr *attr, const struct ib_uverbs_qp_dest *dest);
/* Sets *dest, for the response to QUERY_QP, to the address of a path. */
void address_to_dest(struct ib_uverbs_qp_dest *dest, const struct urxe_path *path);

#endif
