/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "loop.h"

#include <err.h>

#define GID_INDEX 1

struct ibv_context *loop_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!context)
		err(1, "cannot open the device");
	ibv_free_device_list(list);
	return context;
}

void loop_connect(struct ibv_qp *qp, uint32_t dest_qpn)
{
	static const struct loop_retries patient = {
		.min_rnr_timer = 12, /* 0.64 ms */
		.timeout = 18,       /* 1 s, for machines with many runnable threads */
		.retry_cnt = 7,
		.rnr_retry = 7, /* for ever */
	};

	loop_connect_retrying(qp, dest_qpn, &patient);
}

void loop_connect_retrying(struct ibv_qp *qp, uint32_t dest_qpn, const struct loop_retries *retries)
{
	union ibv_gid gid;

	loop_query_gid(qp->context, &gid);
	loop_connect_to(qp, dest_qpn, &gid, retries);
}

void loop_query_gid(struct ibv_context *context, union ibv_gid *gid)
{
	if (ibv_query_gid(context, 1, GID_INDEX, gid))
		err(1, "ibv_query_gid");
}

void loop_connect_to(struct ibv_qp *qp, uint32_t dest_qpn, const union ibv_gid *gid,
		     const struct loop_retries *retries)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = LOOP_ACCESS & ~IBV_ACCESS_LOCAL_WRITE};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = retries->min_rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *gid, .sgid_index = GID_INDEX, .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = retries->timeout,
				  .retry_cnt = retries->retry_cnt,
				  .rnr_retry = retries->rnr_retry,
				  .max_rd_atomic = 4};

	if (ibv_modify_qp(qp, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) ||
	    ibv_modify_qp(qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		err(1, "cannot connect a queue pair");
}
