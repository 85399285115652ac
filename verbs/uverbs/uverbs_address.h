/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Converts addresses in commands: struct ib_uverbs_ah_attr and ib_uverbs_qp_dest. */
#ifndef URXE_VERBS_UVERBS_UVERBS_ADDRESS_H
#define URXE_VERBS_UVERBS_UVERBS_ADDRESS_H

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>
#include <rxe/types.h>

/*
 * Resolves the path to an address, with the next hop from the daemon. 0, or -EINVAL: no GRH (RoCE
 * has no other address, A16.4), or the port does not exist; or the error of port_check_source();
 * other errors are the daemon's. *hop_error: 0, or -ENETUNREACH or -EHOSTUNREACH if the daemon
 * knows no next hop; the function returns 0 all the same, with dmac 0. Then only an HCA, which
 * finds its next hops itself, can use the path. Blocks; adapter.lock must not be held.
 */
int address_path(const struct ib_uverbs_ah_attr *attr, struct urxe_path *path, int *hop_error);
/* Sets *attr to the address in a MODIFY_QP, in the form that address_path() takes. */
void address_from_dest(struct ib_uverbs_ah_attr *attr, const struct ib_uverbs_qp_dest *dest);
/* Sets *dest, for the response to QUERY_QP, to the address of a path. */
void address_to_dest(struct ib_uverbs_qp_dest *dest, const struct urxe_path *path);

#endif
