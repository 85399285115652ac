/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queue_pair.h"

#include <err.h>
#include <errno.h>

#include "draw.h"
#include "region.h"

#define ALL_MASK ((1 << 21) - 1) /* of enum ibv_qp_attr_mask, but for the rate limit */

enum ibv_qp_state queue_pair_state(const struct side *side, int qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	errno = ibv_query_qp(side->qps[qp], &attr, IBV_QP_STATE, &init);
	if (errno)
		err(1, "ibv_query_qp");
	return attr.qp_state;
}

void queue_pair_modify(struct side *side, int qp, struct ibv_qp_attr *attr, int mask)
{
	errno = ibv_modify_qp(side->qps[qp], attr, mask);
	if (errno)
		err(1, "ibv_modify_qp of queue pair %d to state %d", qp, attr->qp_state);
}

/* --- Connection. */

static void reset(struct side *side, int qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	queue_pair_modify(side, qp, &attr, IBV_QP_STATE);
	side->sends[qp] = 0;
	region_unbind_windows(side, qp);
	if (qp < QPS && qp != QP_RC_SRQ)
		side->own.receives[qp] = 0;
}

static void to_init(struct side *side, int qp)
{
	enum ibv_qp_type type = side_qp_type(qp);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QP_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (type == IBV_QPT_RC)
		attr.qp_access_flags |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	queue_pair_modify(side, qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static void to_rtr(struct side *side, int qp, uint32_t psn)
{
	enum ibv_qp_type type = side_qp_type(qp);
	int mask = IBV_QP_STATE;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = side->peer.qpns[qp],
		.rq_psn = psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1, /* 0.01 ms */
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = side->peer.gid,
				    .sgid_index = side->gid_index,
				    .hop_limit = 8}},
	};

	if (type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	queue_pair_modify(side, qp, &attr, mask);
}

static void to_rts(struct side *side, int qp, uint32_t psn)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.max_rd_atomic = 4,
		/* 1 s: on a busy machine the peer may not run for a second. */
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = qp == QP_MARKER ? 7 : 1,
	};

	if (side_qp_type(qp) == IBV_QPT_RC)
		mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY;
	queue_pair_modify(side, qp, &attr, mask);
}

void queue_pair_connect(struct side *side, int qp)
{
	/* Often so that the PSN wraps. */
	uint32_t psns[2] = {draw_one_in(4) ? 0xfffffe : draw_below(1 << 24), draw_below(1 << 24)};

	reset(side, qp);
	to_init(side, qp);
	side_exchange(side);
	to_rtr(side, qp, psns[!side->number]);
	side_exchange(side);
	to_rts(side, qp, psns[side->number]);
	if (qp < QPS)
		side->own.broken[qp] = false;
	side_exchange(side);
}

bool queue_pair_repair(struct side *side, int qp)
{
	if (!side->own.broken[qp] && !side->peer.broken[qp])
		return false;
	queue_pair_connect(side, qp);
	return true;
}

/* --- Operations. */

void queue_pair_change(struct side *side, int qp)
{
	int value = (int)draw_below(40), one = 1 << draw_below(26), rc;
	int mask = draw_one_in(2) ? one : IBV_QP_STATE | one;
	struct ibv_qp_attr attr = {
		.qp_state = draw_below(IBV_QPS_ERR + 1),
		.cur_qp_state = IBV_QPS_RTS,
		.path_mtu = value & 7,
		.path_mig_state = value & 3,
		.qkey = (uint32_t)value,
		.rq_psn = (uint32_t)value,
		.sq_psn = (uint32_t)value,
		.qp_access_flags = (uint32_t)value,
		.pkey_index = value & 1,
		.en_sqd_async_notify = 1,
		.max_rd_atomic = (uint8_t)value,
		.max_dest_rd_atomic = (uint8_t)value,
		/* Not 0, which is 655 ms. */
		.min_rnr_timer = (uint8_t)(value + 1),
		.port_num = value & 1,
		.timeout = (uint8_t)value,
		.retry_cnt = value & 15,
		.rnr_retry = value & 15,
	};

	/* Often the change to a state, and that of rights, which messages notice. */
	if (draw_one_in(2))
		mask = draw_one_in(2) ? IBV_QP_STATE : IBV_QP_ACCESS_FLAGS;
	rc = ibv_modify_qp(side->qps[qp], &attr, mask);
	side_log(side, "ibv_modify_qp qp %d to state %d, mask %#x, values %d: %d", qp,
		 attr.qp_state, mask, value, rc);
}

void queue_pair_query(struct side *side, int qp)
{
	struct ibv_qp_attr a = {0};
	struct ibv_qp_init_attr init = {0};
	int rc = ibv_query_qp(side->qps[qp], &a, ALL_MASK, &init);

	side_log(side, "ibv_query_qp qp %d: %d, states %d %d, mtu %d, migration %d, qkey %#x", qp,
		 rc, a.qp_state, a.cur_qp_state, a.path_mtu, a.path_mig_state, a.qkey);
	side_log(side,
		 "access %#x, pkey %u, draining %u, atomics %u %u, timers %u %u, retries %u %u, "
		 "port %u, to qp %d",
		 a.qp_access_flags, a.pkey_index, a.sq_draining, a.max_rd_atomic,
		 a.max_dest_rd_atomic, a.min_rnr_timer, a.timeout, a.retry_cnt, a.rnr_retry,
		 a.port_num, side_find_qp(&side->peer, a.dest_qp_num));
	side_log(side, "sizes %u %u, segments %u %u, inline %u, all signaled %d", a.cap.max_send_wr,
		 a.cap.max_recv_wr, a.cap.max_send_sge, a.cap.max_recv_sge, a.cap.max_inline_data,
		 init.sq_sig_all);
}

void queue_pair_srq(struct side *side)
{
	struct ibv_srq_attr attr = {.srq_limit = draw_below(10)};
	int rc;

	if (draw_one_in(2)) {
		rc = ibv_modify_srq(side->srq, &attr, IBV_SRQ_LIMIT);
		side_log(side, "ibv_modify_srq to limit %u: %d", attr.srq_limit, rc);
	}
	rc = ibv_query_srq(side->srq, &attr);
	side_log(side, "ibv_query_srq: %d, limit %u", rc, attr.srq_limit);
}
