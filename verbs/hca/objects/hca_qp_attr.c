/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_qp_attr.h"

#include <errno.h>

#include "hca/hca_device.h"
#include "hca_ah.h"

_Static_assert((int)URXE_QP_STATE == IBV_QP_STATE && (int)URXE_QP_AV == IBV_QP_AV &&
		       (int)URXE_QP_DEST_QPN == IBV_QP_DEST_QPN &&
		       (int)URXE_QP_RATE_LIMIT == IBV_QP_RATE_LIMIT,
	       "masks are passed on");
_Static_assert((int)URXE_QPS_ERR == IBV_QPS_ERR && (int)URXE_QPS_SQE == IBV_QPS_SQE &&
		       (int)URXE_QPS_SQD == IBV_QPS_SQD,
	       "states are passed on");
_Static_assert((int)URXE_ACCESS_LOCAL_WRITE == IBV_ACCESS_LOCAL_WRITE &&
		       (int)URXE_ACCESS_REMOTE_ATOMIC == IBV_ACCESS_REMOTE_ATOMIC,
	       "rights are passed on");

/* Attributes that the engine has and most HCAs refuse, such as a path migration state. */
#define NOT_FOR_HCA (URXE_QP_PATH_MIG_STATE | URXE_QP_ALT_PATH | URXE_QP_CAP)

int hca_qp_attr(const struct hca *hca, struct ibv_qp_attr *to, const struct urxe_qp_attr *from,
		uint32_t *mask)
{
	const int pkey_index = hca_pkey_index(hca, from->pkey_index);

	*mask &= ~(uint32_t)NOT_FOR_HCA;
	if (*mask & URXE_QP_PKEY_INDEX && pkey_index < 0)
		return -EOPNOTSUPP;
	*to = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)from->state,
		.cur_qp_state = (enum ibv_qp_state)from->cur_state,
		.path_mtu = (enum ibv_mtu)from->path_mtu,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qp_num = from->dest_qpn,
		.qp_access_flags =
			from->access & (URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE |
					URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC),
		.pkey_index = *mask & URXE_QP_PKEY_INDEX ? (uint16_t)pkey_index : 0,
		.en_sqd_async_notify = from->en_sqd_async_notify,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = hca->port,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.rate_limit = from->rate_limit,
	};
	return *mask & URXE_QP_AV ? hca_ah_attr(hca, &from->path, &to->ah_attr) : 0;
}
