/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "uverbs/device_max.h"

#include "adapter/adapter.h"

#define MAX_OBJECTS (1 << 20)

const uint32_t device_max_objects[OBJECT_TYPES] = {
	[OBJECT_PD] = MAX_OBJECTS, [OBJECT_MR] = MAX_OBJECTS,  [OBJECT_MW] = MAX_OBJECTS,
	[OBJECT_CQ] = MAX_OBJECTS, [OBJECT_SRQ] = MAX_OBJECTS, [OBJECT_QP] = LEASES_QPS,
	[OBJECT_AH] = MAX_OBJECTS,
};

static const struct hca_limits of_engine = {
	.max_mr_size = UINT64_MAX,
	.max_qp_wr = MAX_WR,
	.max_sge = URXE_MAX_SGE,
	.max_cqe = MAX_CQE,
	.max_srq_wr = MAX_WR,
	.max_srq_sge = URXE_MAX_SGE,
	.max_rd_atomic = URXE_MAX_RD_ATOMIC,
	.max_init_rd_atomic = URXE_MAX_RD_ATOMIC,
	.mtu = URXE_MTU_4096,
	.atomics = true,
};

static void limit(uint32_t *value, uint32_t max)
{
	if (*value > max)
		*value = max;
}

void device_max(struct hca_limits *max)
{
	if (!adapter.hca.hca) {
		*max = of_engine;
		return;
	}
	hca_limits(adapter.hca.hca, max);
	limit(&max->max_qp_wr, MAX_WR);
	limit(&max->max_srq_wr, MAX_WR);
	limit(&max->max_cqe, MAX_CQE);
}
