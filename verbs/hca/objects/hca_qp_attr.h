/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Converts the attributes of a queue pair from the engine's structure to libibverbs'. */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_QP_ATTR_H
#define URXE_VERBS_HCA_OBJECTS_HCA_QP_ATTR_H

#include <stdint.h>

#include <infiniband/verbs.h>
#include <rxe/types.h>

struct hca;

/*
 * Fills *to. Removes from *mask the attributes that the HCA must not get; *mask may become 0. 0, or
 * -EINVAL: the HCA does not have the path's source GID. -EOPNOTSUPP: it does not have the P_Key.
 */
int hca_qp_attr(const struct hca *hca, struct ibv_qp_attr *to, const struct urxe_qp_attr *from,
		uint32_t *mask);

#endif
