/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* QP state transitions and attributes (IBA volume 1, 10.3.1 and 11.2.5.2, table 96). */
#include <errno.h>
#include <stdlib.h>

#include "congestion/pacing.h"
#include "device/qp_lifecycle.h"
#include "objects/completion.h"
#include "objects/copy_table.h"
#include "objects/device.h"
#include "objects/pkey.h"
#include "objects/qp.h"
#include "offload/hooks.h"
#include "requester/requester.h"
#include "requester/retransmit.h"
#include "requester/window.h"
#include "responder/resp_resources.h"
#include "wire/gid.h"
#include "wire/packet_build.h"

#define PORT_NUM    1
#define TIMEOUT_MAX 31
#define RETRY_MAX   7
#define RNR_MASK    31

#define M(name) URXE_QP_##name

/* A cell of table 96: required and optional attributes for RC, UC and UD. */
struct cell {
	bool allowed[3];
	uint32_t required[3];
	uint32_t optional[3];
};

#define ALL_TYPES .allowed = {true, true, true}
#define UC_UD     .allowed = {false, true, true}
#define FROM_ANY  [URXE_QPS_RESET] = {ALL_TYPES}, [URXE_QPS_ERR] = {ALL_TYPES}

#define INIT_CONNECTED (M(PKEY_INDEX) | M(PORT) | M(ACCESS_FLAGS))
#define INIT_UD        (M(PKEY_INDEX) | M(PORT) | M(QKEY))
#define RTR_CONNECTED  (M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN))
#define RTR_RC         (RTR_CONNECTED | M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER))
#define RTR_OPT        (M(ACCESS_FLAGS) | M(PKEY_INDEX) | M(ALT_PATH))
#define RTS_RC         (M(TIMEOUT) | M(RETRY_CNT) | M(RNR_RETRY) | M(SQ_PSN) | M(MAX_QP_RD_ATOMIC))
#define MIGRATION      (M(ALT_PATH) | M(PATH_MIG_STATE))
#define RTS_RC_OPT     (M(CUR_STATE) | M(ACCESS_FLAGS) | M(MIN_RNR_TIMER) | MIGRATION)
#define RTS_UC_OPT     (M(CUR_STATE) | M(ACCESS_FLAGS) | MIGRATION)
#define SQE_UC_OPT     (M(CUR_STATE) | M(ACCESS_FLAGS))
#define RTS_UD_OPT     (M(CUR_STATE) | M(QKEY))
#define PACED(opt)     ((opt) | M(RATE_LIMIT))
#define NOTIFY         M(EN_SQD_ASYNC_NOTIFY)
#define SQD_UC_OPT     (M(AV) | M(ACCESS_FLAGS) | M(PKEY_INDEX) | MIGRATION)
#define SQD_RC_OPT                                                                               \
	(SQD_UC_OPT | M(PORT) | M(TIMEOUT) | M(RETRY_CNT) | M(RNR_RETRY) | M(MAX_QP_RD_ATOMIC) | \
	 M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER))

/* clang-format off */
static const struct cell cells[URXE_QPS_COUNT][URXE_QPS_COUNT] = {
	[URXE_QPS_RESET] = {
		FROM_ANY,
		[URXE_QPS_INIT] = {
			ALL_TYPES,
			.required = {INIT_CONNECTED, INIT_CONNECTED, INIT_UD},
		},
	},
	[URXE_QPS_INIT] = {
		FROM_ANY,
		[URXE_QPS_INIT] = {
			ALL_TYPES,
			.optional = {INIT_CONNECTED, INIT_CONNECTED, INIT_UD},
		},
		[URXE_QPS_RTR] = {
			ALL_TYPES,
			.required = {RTR_RC, RTR_CONNECTED, 0},
			.optional = {RTR_OPT, RTR_OPT, M(PKEY_INDEX) | M(QKEY)},
		},
	},
	[URXE_QPS_RTR] = {
		FROM_ANY,
		[URXE_QPS_RTS] = {
			ALL_TYPES,
			.required = {RTS_RC, M(SQ_PSN), M(SQ_PSN)},
			.optional = {PACED(RTS_RC_OPT), PACED(RTS_UC_OPT), PACED(RTS_UD_OPT)},
		},
	},
	[URXE_QPS_RTS] = {
		FROM_ANY,
		[URXE_QPS_RTS] = {
			ALL_TYPES,
			.optional = {PACED(RTS_RC_OPT), PACED(RTS_UC_OPT), PACED(RTS_UD_OPT)},
		},
		[URXE_QPS_SQD] = {ALL_TYPES, .optional = {NOTIFY, NOTIFY, NOTIFY}},
	},
	[URXE_QPS_SQD] = {
		FROM_ANY,
		[URXE_QPS_RTS] = {ALL_TYPES, .optional = {RTS_RC_OPT, RTS_UC_OPT, RTS_UD_OPT}},
		[URXE_QPS_SQD] = {
			ALL_TYPES,
			.optional = {SQD_RC_OPT, SQD_UC_OPT, M(PKEY_INDEX) | M(QKEY)},
		},
	},
	[URXE_QPS_SQE] = {
		FROM_ANY,
		[URXE_QPS_RTS] = {UC_UD, .optional = {0, SQE_UC_OPT, RTS_UD_OPT}},
	},
	[URXE_QPS_ERR] = {FROM_ANY},
};
/* clang-format on */

static bool is_in_range(uint32_t mask, uint32_t bit, uint64_t value, uint64_t max)
{
	return !(mask & bit) || value <= max;
}

/* Whether the caller asks for automatic path migration (IBA 17.2.8), which is not supported: only
 * the migration state MIGRATED can be set. */
static bool wants_migration(const struct urxe_qp_attr *a, uint32_t mask)
{
	return mask & M(ALT_PATH) ||
	       (mask & M(PATH_MIG_STATE) && a->path_mig_state != URXE_MIG_MIGRATED);
}

/* Whether packets can take the path: both addresses of a RoCEv2 packet are of one family. */
static bool is_valid_path(const struct urxe_qp *qp, const struct urxe_path *path)
{
	const struct gid_entry *source;

	if (path->sgid_index >= URXE_MAX_GIDS)
		return false;
	source = &qp->dev->gids[path->sgid_index];
	return source->valid && (source->v1 || gid_is_v4(&source->gid) == gid_is_v4(&path->dgid)) &&
	       path->flow_label <= 0xfffff && path->sl <= 7;
}

static bool is_valid_pkey_index(const struct urxe_qp *qp, uint16_t index)
{
	return index < URXE_MAX_PKEYS && pkey_valid(qp->dev->pkeys[index]);
}

/* Whether the send queue has READs or atomics, which max_rd_atomic 0 would block. */
static bool has_rd_atomic_queued(const struct urxe_qp *qp)
{
	for (uint32_t i = qp->sq.tail; i != qp->sq.head; i++) {
		if (wqe_is_rd_atomic(sq_wqe(&qp->sq, i)))
			return true;
	}
	return false;
}

static bool has_valid_values(const struct urxe_qp *qp, const struct urxe_qp_attr *a, uint32_t mask)
{
	if (mask & M(CUR_STATE) && a->cur_state != qp->attr.state)
		return false;
	if (mask & M(PORT) && a->port != PORT_NUM)
		return false;
	if (mask & M(PATH_MTU) && (a->path_mtu < URXE_MTU_256 || a->path_mtu > URXE_MTU_4096 ||
				   128u << a->path_mtu > qp->dev->path_mtu))
		return false;
	if (mask & M(AV) && !is_valid_path(qp, &a->path))
		return false;
	if (mask & M(PKEY_INDEX) && !is_valid_pkey_index(qp, a->pkey_index))
		return false;
	if (mask & M(MAX_QP_RD_ATOMIC) && !a->max_rd_atomic && has_rd_atomic_queued(qp))
		return false;
	if (mask & M(ACCESS_FLAGS) && a->access & ~URXE_ACCESS_ALL)
		return false;
	return is_in_range(mask, M(PATH_MIG_STATE), a->path_mig_state, URXE_MIG_ARMED) &&
	       is_in_range(mask, M(TIMEOUT), a->timeout, TIMEOUT_MAX) &&
	       is_in_range(mask, M(MAX_QP_RD_ATOMIC), a->max_rd_atomic, URXE_MAX_RD_ATOMIC) &&
	       is_in_range(mask, M(MAX_DEST_RD_ATOMIC), a->max_dest_rd_atomic,
			   URXE_MAX_RD_ATOMIC) &&
	       is_in_range(mask, M(DEST_QPN), a->dest_qpn, URXE_QPN_MASK) &&
	       is_in_range(mask, M(RQ_PSN), a->rq_psn, URXE_PSN_MASK) &&
	       is_in_range(mask, M(SQ_PSN), a->sq_psn, URXE_PSN_MASK);
}

static bool is_valid_transition(const struct urxe_qp *qp, uint8_t to, uint32_t mask)
{
	static const uint8_t column[] = {[URXE_QPT_RC] = 0, [URXE_QPT_UC] = 1, [URXE_QPT_UD] = 2};
	uint8_t i = column[qp->type];
	const struct cell *cell;

	if (to >= URXE_QPS_COUNT)
		return false;
	cell = &cells[qp->attr.state][to];
	return cell->allowed[i] && (mask & cell->required[i]) == cell->required[i] &&
	       !(mask & ~(cell->required[i] | cell->optional[i] | M(STATE)));
}

/*
 * Limits the three attributes that no driver of a RoCE device in Linux checks: programs pass larger
 * values. In rdma_rxe each retry decrements a retry count above 7 until it is 7, and then no
 * longer. Of the RNR timer rdma_rxe and mlx5 use only the low bits.
 */
static void cut_retries(struct urxe_qp_attr *a)
{
	if (a->retry_cnt > RETRY_MAX)
		a->retry_cnt = RETRY_MAX;
	if (a->rnr_retry > RETRY_MAX)
		a->rnr_retry = RETRY_MAX;
	a->min_rnr_timer &= RNR_MASK;
}

static void set_sq_psn(struct urxe_qp *qp, uint32_t psn)
{
	qp->req.psn = qp->req.una = psn;
	retransmit_init(qp);
}

#define COPY(bit, field)                           \
	do {                                       \
		if (mask & M(bit))                 \
			qp->attr.field = a->field; \
	} while (0)

static void apply_values(struct urxe_qp *qp, const struct urxe_qp_attr *a, uint32_t mask)
{
	COPY(ACCESS_FLAGS, access);
	COPY(PKEY_INDEX, pkey_index);
	COPY(PORT, port);
	COPY(QKEY, qkey);
	COPY(AV, path);
	COPY(PATH_MTU, path_mtu);
	COPY(TIMEOUT, timeout);
	COPY(RETRY_CNT, retry_cnt);
	COPY(RNR_RETRY, rnr_retry);
	COPY(MAX_QP_RD_ATOMIC, max_rd_atomic);
	COPY(MIN_RNR_TIMER, min_rnr_timer);
	COPY(DEST_QPN, dest_qpn);
	COPY(RQ_PSN, rq_psn);
	COPY(SQ_PSN, sq_psn);
	COPY(RATE_LIMIT, rate_limit);
	if (mask & M(PATH_MTU))
		qp->mtu = 128u << a->path_mtu;
	if (mask & M(RQ_PSN)) {
		/* While the HCA changed its QP to RTR, messages may have arrived there: resp.psn
		 * has counted their packets from 0. */
		qp->resp.psn = urxe_psn_add(a->rq_psn, qp->resp.psn);
		qp->resp.ack_psn = urxe_psn_add(a->rq_psn, -1u);
		/* PSN for a QP that a take-over stopped in INIT, and that now goes on. */
		qp->resp.resume.psn = a->rq_psn;
	}
	if (mask & M(SQ_PSN))
		set_sq_psn(qp, a->sq_psn);
	if (mask & M(RETRY_CNT))
		qp->req.retries = a->retry_cnt;
	if (mask & M(RNR_RETRY))
		qp->req.rnr_retries = a->rnr_retry;
	if (mask & M(RATE_LIMIT))
		pace_set_limit(qp, a->rate_limit);
	if (mask & (M(AV) | M(DEST_QPN) | M(PKEY_INDEX))) {
		qp->req.copy = (struct copy_proof){0};
		copy_table_renew_qp(qp->dev, qp->qpn);
	}
	if (mask & (M(AV) | M(DEST_QPN))) {
		qp->req.window_may_grow = true; /* it may be smaller than the new path allows */
		window_path_changed(qp);
		qp->peer_gso = false;
		build_template(&qp->header, qp->dev, &qp->attr.path, qp->qpn, qp->attr.dest_qpn);
		build_label_flow(qp);
	}
}

#undef COPY

/* Cancels the ACK and the responses that are due, because the program ends the connection. If a NAK
 * is due, these responses stay due: the NAK follows the responses to earlier requests. */
static void cancel_answers(struct urxe_qp *qp)
{
	qp->resp.ack_due = false;
	timer_clear(&qp->ack_timer);
	if (!qp->resp.nak)
		qp_clear_responses(qp);
}

static void apply_state(struct urxe_qp *qp, const struct urxe_qp_attr *a)
{
	uint8_t from = qp->attr.state;

	switch (a->state) {
	case URXE_QPS_RESET: qp_reset(qp); return;
	case URXE_QPS_ERR:
		if (from != URXE_QPS_ERR)
			cancel_answers(qp);
		qp_error(qp);
		return;
	default: qp->attr.state = a->state; break;
	}
	if (a->state == URXE_QPS_SQD && from != URXE_QPS_SQD) {
		/* For an offloaded QP the HCA reports the event, unless a take-over stops it
		 * before. */
		if (!qp->offloaded || qp->stopping)
			req_begin_drain(qp);
		qp_schedule(qp); /* urxe_output then finds the QP */
	}
	if (a->state == URXE_QPS_RTS) {
		qp->req.drain_event = false;
		qp_schedule(qp);
	}
}

int urxe_qp_modify(struct urxe_qp *qp, uint64_t now, const struct urxe_qp_attr *attr, uint32_t mask)
{
	uint8_t to = mask & M(STATE) ? attr->state : qp->attr.state;
	struct urxe_qp_attr wanted = *attr;
	struct resp_resource *resources = NULL;
	bool drains;
	int rc;

	RECORD_ENTRY(qp->dev, QP_MODIFY, .now = now, .qpn = qp->qpn, .value = mask, .attr = *attr);
	dev_pass_time(qp->dev, now);
	if (!is_valid_transition(qp, to, mask) || !has_valid_values(qp, attr, mask))
		return -EINVAL;
	if (wants_migration(attr, mask))
		return -EOPNOTSUPP;
	if (mask & M(MAX_DEST_RD_ATOMIC)) {
		rc = resource_copy(qp, attr->max_dest_rd_atomic, &resources);
		if (rc)
			return rc;
	}
	wanted.state = to;
	cut_retries(&wanted);
	drains = to == URXE_QPS_SQD && qp->attr.state != URXE_QPS_SQD;
	/* The HCA may report the event before offload_modify() returns. */
	if (drains)
		qp->req.drain_event = mask & M(EN_SQD_ASYNC_NOTIFY) && attr->en_sqd_async_notify;
	rc = offload_modify(qp, &wanted, mask);
	/* The QP may have failed while the HCA changed its own QP. */
	if (!rc && !is_valid_transition(qp, to, mask))
		rc = -EINVAL;
	if (rc) {
		qp->req.drain_event &= !drains;
		free(resources);
		return rc;
	}
	if (resources)
		resource_install(qp, attr->max_dest_rd_atomic, resources);
	apply_values(qp, &wanted, mask);
	apply_state(qp, &wanted);
	qp_publish_rights(qp);
	return 0;
}
