/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes of queue pairs, from the engine's to libibverbs'. */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_QP_ATTR_H
#define URXE_VERBS_HCA_OBJECTS_HCA_QP_ATTR_H

#include <stdint.h>

#include <infiniband/verbs.h>
#include <rxe/types.h>

struct hca;

/*
 * *mask becomes that of the attributes that the HCA gets; it may be 0. -EINVAL: the HCA does not
 * have the path's source GID. -EOPNOTSUPP: it does not have the P_Key.
 */
int hca_qp_attr(const struct hca *hca, struct ibv_qp_attr *to, const struct urxe_qp_attr *from,
		uint32_t *mask);

#endif
