/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state machine of queue pairs: which transition is allowed, which attributes it requires
 * and which it takes beside (IBA 10.3.1 and 11.2.5.2, tables 91 and following).
 */
#include <errno.h>
#include <string.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define STATES (IBV_QPS_ERR + 1)

static const char *const state_names[STATES] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

/* The attributes that are asked for: what a device has of path migration is its own matter. */
static const struct {
	int bit;
	const char *name;
} attributes[] = {
	{IBV_QP_CUR_STATE, "CUR_STATE"},
	{IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
	{IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
	{IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
	{IBV_QP_PORT, "PORT"},
	{IBV_QP_QKEY, "QKEY"},
	{IBV_QP_AV, "AV"},
	{IBV_QP_PATH_MTU, "PATH_MTU"},
	{IBV_QP_TIMEOUT, "TIMEOUT"},
	{IBV_QP_RETRY_CNT, "RETRY_CNT"},
	{IBV_QP_RNR_RETRY, "RNR_RETRY"},
	{IBV_QP_RQ_PSN, "RQ_PSN"},
	{IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
	{IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
	{IBV_QP_SQ_PSN, "SQ_PSN"},
	{IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
	{IBV_QP_CAP, "CAP"},
	{IBV_QP_DEST_QPN, "DEST_QPN"},
};

#define ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

struct transition {
	enum ibv_qp_state from, to;
	int required[3], optional[3]; /* of RC, UC and UD; -1: not for this type */
};

#define B(name) IBV_QP_##name

#define INIT_C (B(PKEY_INDEX) | B(PORT) | B(ACCESS_FLAGS))
#define INIT_D (B(PKEY_INDEX) | B(PORT) | B(QKEY))
#define RTR_C  (B(AV) | B(PATH_MTU) | B(DEST_QPN) | B(RQ_PSN))
#define RTR_RC (RTR_C | B(MAX_DEST_RD_ATOMIC) | B(MIN_RNR_TIMER))
#define RTS_RC (B(TIMEOUT) | B(RETRY_CNT) | B(RNR_RETRY) | B(SQ_PSN) | B(MAX_QP_RD_ATOMIC))
#define KEYS_C (B(PKEY_INDEX) | B(ACCESS_FLAGS))
#define KEYS_D (B(PKEY_INDEX) | B(QKEY))
#define RUN_RC (B(CUR_STATE) | B(ACCESS_FLAGS) | B(MIN_RNR_TIMER))
#define RUN_UC (B(CUR_STATE) | B(ACCESS_FLAGS))
#define RUN_UD (B(CUR_STATE) | B(QKEY))
#define NOTIFY B(EN_SQD_ASYNC_NOTIFY)
#define SQD_UC (KEYS_C | B(AV))
#define SQD_RC                                                                               \
	(SQD_UC | B(PORT) | B(TIMEOUT) | B(RETRY_CNT) | B(RNR_RETRY) | B(MAX_QP_RD_ATOMIC) | \
	 B(MAX_DEST_RD_ATOMIC) | B(MIN_RNR_TIMER))

static const struct transition transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, {INIT_C, INIT_C, INIT_D}, {0, 0, 0}},
	{IBV_QPS_INIT, IBV_QPS_INIT, {0, 0, 0}, {INIT_C, INIT_C, INIT_D}},
	{IBV_QPS_INIT, IBV_QPS_RTR, {RTR_RC, RTR_C, 0}, {KEYS_C, KEYS_C, KEYS_D}},
	{IBV_QPS_RTR, IBV_QPS_RTS, {RTS_RC, B(SQ_PSN), B(SQ_PSN)}, {RUN_RC, RUN_UC, RUN_UD}},
	{IBV_QPS_RTS, IBV_QPS_RTS, {0, 0, 0}, {RUN_RC, RUN_UC, RUN_UD}},
	{IBV_QPS_RTS, IBV_QPS_SQD, {0, 0, 0}, {NOTIFY, NOTIFY, NOTIFY}},
	{IBV_QPS_SQD, IBV_QPS_SQD, {0, 0, 0}, {SQD_RC, SQD_UC, KEYS_D}},
	{IBV_QPS_SQD, IBV_QPS_RTS, {0, 0, 0}, {RUN_RC, RUN_UC, RUN_UD}},
	{IBV_QPS_SQE, IBV_QPS_RTS, {-1, 0, 0}, {0, RUN_UC, RUN_UD}},
};

struct type {
	enum ibv_qp_type type;
	int column;
	const char *name;
};

static const struct transition *find(const struct type *type, enum ibv_qp_state from,
				     enum ibv_qp_state to)
{
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (transitions[i].from == from && transitions[i].to == to &&
		    transitions[i].required[type->column] >= 0)
			return &transitions[i];
	return NULL;
}

/* Values for every attribute, all of them in their ranges. */
static struct ibv_qp_attr values(struct side *s, enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr, next;

	side_attr(s, s, IBV_QPS_INIT, &attr);
	side_attr(s, s, IBV_QPS_RTR, &next);
	attr.path_mtu = s->qp->qp_type == IBV_QPT_UD ? IBV_MTU_256 : next.path_mtu;
	attr.dest_qp_num = s->qp->qp_num;
	attr.ah_attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = PORT,
		.grh = {.dgid = hca.gid, .sgid_index = (uint8_t)hca.gid_index, .hop_limit = 64}};
	attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 1;
	attr.min_rnr_timer = 1;
	attr.cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
	attr.cur_qp_state = from;
	attr.qp_state = to;
	return attr;
}

static int try_modify(struct side *s, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = values(s, from, to);

	return ibv_modify_qp(s->qp, &attr, mask | IBV_QP_STATE);
}

/* A local error of an unreliable QP leads to SQE (IBA 10.3.1.6). */
static bool to_sqe(struct side *s)
{
	struct ibv_sge nowhere = {(uintptr_t)s->room, 8, s->mr->lkey ^ 0x5a5a5a5a};
	struct ibv_send_wr wr = side_wr(s, IBV_WR_SEND, &nowhere, s);

	MUST(!post_send(s, &wr));
	next_wc(s->cq);
	return side_state(s) == IBV_QPS_SQE;
}

/* Until a QP in SQD has drained, Linux' rdma_rxe lets it go nowhere but to ERR (rxe_qp_chk_attr).
 */
static void await_drained(struct side *s, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	do
		MUST(!ibv_query_qp(s->qp, attr, 0xffff, &init));
	while (attr->sq_draining);
}

/* Brings a QP into a state, from wherever it is. */
static bool bring(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;

	/* Those that do not leave a state for RESET may by way of ERR. */
	if (side_step(s, NULL, IBV_QPS_RESET)) {
		MUST(!side_step(s, NULL, IBV_QPS_ERR));
		MUST(!side_step(s, NULL, IBV_QPS_RESET));
	}
	switch (state) {
	case IBV_QPS_RESET: break;
	case IBV_QPS_ERR:
		side_up(s, s, IBV_QPS_INIT);
		MUST(!side_step(s, NULL, IBV_QPS_ERR));
		break;
	case IBV_QPS_SQE: side_up(s, s, IBV_QPS_RTS); return to_sqe(s);
	case IBV_QPS_SQD:
		side_up(s, s, IBV_QPS_RTS);
		MUST(!side_step(s, NULL, IBV_QPS_SQD));
		await_drained(s, &attr);
		break;
	default: side_up(s, s, state); break;
	}
	MUST(side_state(s) == state);
	return true;
}

/* Each attribute: missing where it is required, alone beside where it is optional, and where it is
 * neither. */
static void attributes_of(const struct type *type, struct side *s, const struct transition *t)
{
	int required = t->required[type->column], optional = t->optional[type->column];
	const char *from = state_names[t->from], *to = state_names[t->to];

	for (size_t i = 0; i < ATTRIBUTES; i++) {
		int bit = attributes[i].bit;
		const char *name = attributes[i].name;

		MUST(bring(s, t->from));
		if (required & bit)
			rule_errno(EINVAL, try_modify(s, t->from, t->to, required & ~bit),
				   "%s %s to %s needs %s", type->name, from, to, name);
		else if (optional & bit)
			rule_errno(0, try_modify(s, t->from, t->to, required | bit),
				   "%s %s to %s takes %s", type->name, from, to, name);
		else
			rule_errno(EINVAL, try_modify(s, t->from, t->to, required | bit),
				   "%s %s to %s does not take %s", type->name, from, to, name);
	}
}

static void refused(const struct type *type, struct side *s, enum ibv_qp_state from,
		    enum ibv_qp_state to)
{
	struct ibv_qp_attr attr;
	int mask = side_attr(s, s, to, &attr);

	rule_errno(EINVAL, ibv_modify_qp(s->qp, &attr, mask), "%s %s to %s is refused", type->name,
		   state_names[from], state_names[to]);
	rule(side_state(s) == from, "%s stays in %s after %s was refused", type->name,
	     state_names[from], state_names[to]);
}

static void one_transition(const struct type *type, struct side *s, enum ibv_qp_state from,
			   enum ibv_qp_state to)
{
	const struct transition *t = find(type, from, to);
	/* From RESET to ERR, too, by the architecture; Linux refuses that for all drivers. */
	bool always = to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET);

	MUST(bring(s, from));
	if (!t && !always) {
		refused(type, s, from, to);
		return;
	}
	rule_errno(0, try_modify(s, from, to, t ? t->required[type->column] : 0), "%s %s to %s",
		   type->name, state_names[from], state_names[to]);
	rule(side_state(s) == to, "%s is in %s when it came from %s", type->name, state_names[to],
	     state_names[from]);
	if (t)
		attributes_of(type, s, t);
}

static void all_transitions(const struct type *type)
{
	struct side s = {0};

	side_create(&s, type->type, 0);
	for (enum ibv_qp_state from = IBV_QPS_RESET; from < STATES; from++) {
		if (from == IBV_QPS_SQE && type->type == IBV_QPT_RC)
			continue;
		if (from == IBV_QPS_SQE &&
		    !rule(bring(&s, from), "%s goes to SQE by a local error of a send", type->name))
			continue;
		for (enum ibv_qp_state to = IBV_QPS_RESET; to < STATES; to++)
			one_transition(type, &s, from, to);
	}
}

static void rc(void)
{
	all_transitions(&(struct type){IBV_QPT_RC, 0, "RC"});
}

static void uc(void)
{
	all_transitions(&(struct type){IBV_QPT_UC, 1, "UC"});
}

static void ud(void)
{
	all_transitions(&(struct type){IBV_QPT_UD, 2, "UD"});
}

/* --- Values, and what a query says of them. */

static int with(struct side *s, enum ibv_qp_state to, void (*change)(struct ibv_qp_attr *))
{
	struct ibv_qp_attr attr;
	int mask = side_attr(s, s, to, &attr), rc;

	MUST(bring(s, to - 1));
	change(&attr);
	rc = ibv_modify_qp(s->qp, &attr, mask);
	if (rc)
		rule(side_state(s) == to - 1, "a QP whose change was refused stays where it is");
	return rc;
}

#define CHANGE(name, statement)                 \
	static void name(struct ibv_qp_attr *a) \
	{                                       \
		statement;                      \
	}

CHANGE(port_0, a->port_num = 0)
CHANGE(port_last, a->port_num = (uint8_t)(hca.attr.phys_port_cnt + 1))
CHANGE(pkey_last, a->pkey_index = hca.port.pkey_tbl_len)
CHANGE(mtu_0, a->path_mtu = 0)
CHANGE(mtu_6, a->path_mtu = 6)
CHANGE(mtu_active, a->path_mtu = hca.port.active_mtu)
CHANGE(not_global, a->ah_attr.is_global = 0)
CHANGE(ah_port, a->ah_attr.port_num = 0)
CHANGE(reads_in, a->max_dest_rd_atomic = (uint8_t)(hca.attr.max_qp_rd_atom + 1))
CHANGE(reads_in_most, a->max_dest_rd_atomic = (uint8_t)hca.attr.max_qp_rd_atom)
CHANGE(rnr_32, a->min_rnr_timer = 32)
CHANGE(timeout_32, a->timeout = 32)
CHANGE(timeout_31, a->timeout = 31)
CHANGE(retry_8, a->retry_cnt = 8)
CHANGE(rnr_retry_8, a->rnr_retry = 8)
CHANGE(reads_out, a->max_rd_atomic = (uint8_t)(hca.attr.max_qp_init_rd_atom + 1))
CHANGE(reads_out_most, a->max_rd_atomic = (uint8_t)hca.attr.max_qp_init_rd_atom)
CHANGE(unknown_state, a->qp_state = (enum ibv_qp_state)7)

static void ranges(void)
{
	struct side s = {0};

	side_create(&s, IBV_QPT_RC, 0);
	rule_errno(EINVAL, with(&s, IBV_QPS_INIT, port_0), "there is no port 0");
	rule_errno(EINVAL, with(&s, IBV_QPS_INIT, port_last), "there is no port after the last");
	rule_errno(EINVAL, with(&s, IBV_QPS_INIT, pkey_last), "there is no P_Key after the last");
	rule_errno(EINVAL, with(&s, IBV_QPS_INIT, unknown_state), "there is no eighth state");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, mtu_0), "there is no MTU below 256");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, mtu_6), "there is no MTU above 4096");
	rule_errno(0, with(&s, IBV_QPS_RTR, mtu_active), "the port's active MTU is one of a path");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, not_global), "a path of RoCE is a global one");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, ah_port), "a path is from a port");
	if (hca.attr.max_qp_rd_atom < 255) {
		rule_errno(0, with(&s, IBV_QPS_RTR, reads_in_most),
			   "a QP takes as many READs at a time as the device says");
		rule_errno(EINVAL, with(&s, IBV_QPS_RTR, reads_in), "and not one more");
	}
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, rnr_32), "there is no RNR timer 32");
	rule_errno(0, with(&s, IBV_QPS_RTS, timeout_31), "timeout 31 is the greatest");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTS, timeout_32), "there is no timeout 32");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTS, retry_8), "there is no retry count 8");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTS, rnr_retry_8), "there is no RNR retry count 8");
	if (hca.attr.max_qp_init_rd_atom < 255) {
		rule_errno(0, with(&s, IBV_QPS_RTS, reads_out_most),
			   "a QP has as many READs out as the device says");
		rule_errno(EINVAL, with(&s, IBV_QPS_RTS, reads_out), "and not one more of them");
	}
}

static void query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr, got;
	struct side s = {0};
	int mask;

	side_create(&s, IBV_QPT_RC, 0);
	side_up(&s, &s, IBV_QPS_INIT);
	MUST(!ibv_query_qp(s.qp, &got, 0xffff, &init));
	side_attr(&s, &s, IBV_QPS_INIT, &attr);
	rule(got.qp_state == IBV_QPS_INIT && got.cur_qp_state == IBV_QPS_INIT,
	     "a query says the state");
	rule(got.port_num == PORT && got.pkey_index == 0, "it says port and P_Key index");
	rule(got.qp_access_flags == attr.qp_access_flags, "it says the access rights");
	mask = side_attr(&s, &s, IBV_QPS_RTR, &attr);
	attr.rq_psn = 0x123456;
	attr.ah_attr.grh.traffic_class = 0x28;
	attr.ah_attr.grh.flow_label = 0x12345;
	attr.ah_attr.sl = 3;
	MUST(!ibv_modify_qp(s.qp, &attr, mask));
	MUST(!ibv_query_qp(s.qp, &got, 0xffff, &init));
	rule(got.path_mtu == attr.path_mtu && got.dest_qp_num == s.qp->qp_num &&
		     got.rq_psn == 0x123456,
	     "it says path MTU, destination and first PSN");
	rule(got.max_dest_rd_atomic == 4 && got.min_rnr_timer == 1,
	     "it says what the responder does with READs, and its RNR timer");
	rule(got.ah_attr.is_global && got.ah_attr.port_num == PORT && got.ah_attr.sl == 3 &&
		     !memcmp(&got.ah_attr.grh.dgid, &hca.gid, sizeof(hca.gid)) &&
		     got.ah_attr.grh.sgid_index == hca.gid_index &&
		     got.ah_attr.grh.traffic_class == 0x28 && got.ah_attr.grh.flow_label == 0x12345,
	     "it says the path");
	mask = side_attr(&s, &s, IBV_QPS_RTS, &attr);
	attr.sq_psn = 0x654321;
	attr.timeout = 15;
	attr.retry_cnt = 5;
	attr.rnr_retry = 6;
	MUST(!ibv_modify_qp(s.qp, &attr, mask));
	MUST(!ibv_query_qp(s.qp, &got, 0xffff, &init));
	rule(got.sq_psn == 0x654321 && got.timeout == 15 && got.retry_cnt == 5 &&
		     got.rnr_retry == 6 && got.max_rd_atomic == 4,
	     "it says what the requester does");
	MUST(!side_step(&s, NULL, IBV_QPS_SQD));
	await_drained(&s, &got);
	rule(got.qp_state == IBV_QPS_SQD, "an idle QP has drained by and by");
	attr.cur_qp_state = IBV_QPS_RTS;
	attr.qp_state = IBV_QPS_RTS;
	rule_errno(EINVAL, ibv_modify_qp(s.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE),
		   "who is wrong about the state changes nothing");
}

const struct test qp_state_tests[] = {
	{"rc", rc}, {"uc", uc}, {"ud", ud}, {"ranges", ranges}, {"query", query}, {NULL, NULL},
};
