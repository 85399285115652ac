/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state machine of queue pairs: allowed transitions, and their required and optional attributes
 * (IBA 10.3.1 and 11.2.5.2, tables 91 and following).
 */
#include <errno.h>
#include <string.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define STATES (IBV_QPS_ERR + 1)

static const char *const state_names[STATES] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

/* The tested attributes; path migration is not tested, because devices may lack it. */
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
	int required[3],
		optional[3]; /* attributes of RC, UC and UD; -1: no such transition for this type */
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

static const struct transition *find_transition(const struct type *type, enum ibv_qp_state from,
						enum ibv_qp_state to)
{
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (transitions[i].from == from && transitions[i].to == to &&
		    transitions[i].required[type->column] >= 0)
			return &transitions[i];
	return NULL;
}

/* Valid values of every attribute. */
static struct ibv_qp_attr valid_attributes(struct side *s, enum ibv_qp_state from,
					   enum ibv_qp_state to)
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
	struct ibv_qp_attr attr = valid_attributes(s, from, to);

	return ibv_modify_qp(s->qp, &attr, mask | IBV_QP_STATE);
}

/* Brings an unreliable QP to SQE by a local error (IBA 10.3.1.6). */
static bool to_sqe(struct side *s)
{
	struct ibv_sge nowhere = {(uintptr_t)s->room, 8, s->mr->lkey ^ 0x5a5a5a5a};
	struct ibv_send_wr wr = side_wr(s, IBV_WR_SEND, &nowhere, s);

	MUST(!post_send(s, &wr));
	next_wc(s->cq);
	return side_state(s) == IBV_QPS_SQE;
}

/* Linux' rdma_rxe lets a QP that still drains in SQD go to ERR only (rxe_qp_chk_attr).
 */
static void await_drained(struct side *s, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	do
		MUST(!ibv_query_qp(s->qp, attr, 0xffff, &init));
	while (attr->sq_draining);
}

/* Brings a QP from any state into another one. */
static bool bring_to_state(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;

	/* A device may refuse a transition to RESET, but permit it via ERR. */
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

/* Tests each attribute of a transition: omitted if it is required, added if it is optional, and
 * added if it is neither. */
static void check_attributes(const struct type *type, struct side *s, const struct transition *t)
{
	int required = t->required[type->column], optional = t->optional[type->column];
	const char *from = state_names[t->from], *to = state_names[t->to];

	for (size_t i = 0; i < ATTRIBUTES; i++) {
		int bit = attributes[i].bit;
		const char *name = attributes[i].name;

		MUST(bring_to_state(s, t->from));
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

static void check_transition_refused(const struct type *type, struct side *s,
				     enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr;
	int mask = side_attr(s, s, to, &attr);

	rule_errno(EINVAL, ibv_modify_qp(s->qp, &attr, mask), "%s %s to %s is refused", type->name,
		   state_names[from], state_names[to]);
	rule(side_state(s) == from, "%s stays in %s after %s was refused", type->name,
	     state_names[from], state_names[to]);
}

static void check_transition(const struct type *type, struct side *s, enum ibv_qp_state from,
			     enum ibv_qp_state to)
{
	const struct transition *t = find_transition(type, from, to);
	/* The architecture permits RESET to ERR, too; Linux refuses it for all drivers. */
	bool always = to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET);

	MUST(bring_to_state(s, from));
	if (!t && !always) {
		check_transition_refused(type, s, from, to);
		return;
	}
	rule_errno(0, try_modify(s, from, to, t ? t->required[type->column] : 0), "%s %s to %s",
		   type->name, state_names[from], state_names[to]);
	rule(side_state(s) == to, "%s is in %s when it came from %s", type->name, state_names[to],
	     state_names[from]);
	if (t)
		check_attributes(type, s, t);
}

static void check_all_transitions(const struct type *type)
{
	struct side s = {0};

	side_create(&s, type->type, 0);
	for (enum ibv_qp_state from = IBV_QPS_RESET; from < STATES; from++) {
		if (from == IBV_QPS_SQE && type->type == IBV_QPT_RC)
			continue;
		if (from == IBV_QPS_SQE &&
		    !rule(bring_to_state(&s, from), "%s goes to SQE by a local error of a send",
			  type->name))
			continue;
		for (enum ibv_qp_state to = IBV_QPS_RESET; to < STATES; to++)
			check_transition(type, &s, from, to);
	}
}

static void test_transitions_of_rc(void)
{
	check_all_transitions(&(struct type){IBV_QPT_RC, 0, "RC"});
}

static void test_transitions_of_uc(void)
{
	check_all_transitions(&(struct type){IBV_QPT_UC, 1, "UC"});
}

static void test_transitions_of_ud(void)
{
	check_all_transitions(&(struct type){IBV_QPT_UD, 2, "UD"});
}

/* --- Ranges of attributes, and ibv_query_qp */

static int with(struct side *s, enum ibv_qp_state to, void (*change)(struct ibv_qp_attr *))
{
	struct ibv_qp_attr attr;
	int mask = side_attr(s, s, to, &attr), rc;

	MUST(bring_to_state(s, to - 1));
	change(&attr);
	rc = ibv_modify_qp(s->qp, &attr, mask);
	if (rc)
		rule(side_state(s) == to - 1, "a refused change leaves the state unchanged");
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

static void test_values_out_of_range_are_refused(void)
{
	struct side s = {0};

	side_create(&s, IBV_QPT_RC, 0);
	rule_errno(EINVAL, with(&s, IBV_QPS_INIT, port_0), "port 0 is refused");
	rule_errno(EINVAL, with(&s, IBV_QPS_INIT, port_last), "a port after the last is refused");
	rule_errno(EINVAL, with(&s, IBV_QPS_INIT, pkey_last),
		   "a P_Key index after the last is refused");
	rule_errno(EINVAL, with(&s, IBV_QPS_INIT, unknown_state), "an unknown state is refused");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, mtu_0), "a path MTU below 256 is refused");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, mtu_6), "a path MTU above 4096 is refused");
	rule_errno(0, with(&s, IBV_QPS_RTR, mtu_active),
		   "the port's active MTU is accepted as the path MTU");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, not_global), "a path without GRH is refused");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTR, ah_port), "a path with a wrong port is refused");
	if (hca.attr.max_qp_rd_atom < 255) {
		rule_errno(0, with(&s, IBV_QPS_RTR, reads_in_most),
			   "max_qp_rd_atom responder resources are accepted");
		rule_errno(EINVAL, with(&s, IBV_QPS_RTR, reads_in), "and not one more");
	}
	rule_errno(0, with(&s, IBV_QPS_RTS, timeout_31), "timeout 31 is accepted");
	rule_errno(EINVAL, with(&s, IBV_QPS_RTS, timeout_32), "timeout 32 is refused");
	if (hca.attr.max_qp_init_rd_atom < 255) {
		rule_errno(0, with(&s, IBV_QPS_RTS, reads_out_most),
			   "max_qp_init_rd_atom outstanding READs are accepted");
		rule_errno(EINVAL, with(&s, IBV_QPS_RTS, reads_out),
			   "one more than the maximum is refused");
	}
}

/* Programs give 10 or 255 for "often". No driver of a RoCE device in Linux refuses that. */
static void test_high_retry_counts_are_accepted(void)
{
	struct side s = {0};

	side_create(&s, IBV_QPT_RC, 0);
	rule_errno(0, with(&s, IBV_QPS_RTR, rnr_32), "an RNR timer may be above 31");
	rule_errno(0, with(&s, IBV_QPS_RTS, retry_8), "a retry count may be above 7");
	rule_errno(0, with(&s, IBV_QPS_RTS, rnr_retry_8), "an RNR retry count may be above 7");
	side_destroy(&s);
}

/* Programs take a random number as their first PSN. */
static void test_psns_have_24_bits(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct side s = {0};
	int mask;

	side_create(&s, IBV_QPT_RC, 0);
	MUST(bring_to_state(&s, IBV_QPS_INIT));
	mask = side_attr(&s, &s, IBV_QPS_RTR, &attr);
	attr.rq_psn = 0xff123456;
	rule_errno(0, ibv_modify_qp(s.qp, &attr, mask), "a receive PSN may have more than 24 bits");
	mask = side_attr(&s, &s, IBV_QPS_RTS, &attr);
	attr.sq_psn = 0x1654321;
	rule_errno(0, ibv_modify_qp(s.qp, &attr, mask), "a send PSN may have more than 24 bits");
	MUST(!ibv_query_qp(s.qp, &attr, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init));
	rule(attr.rq_psn == 0x123456 && attr.sq_psn == 0x654321,
	     "the low 24 bits of a PSN are used");
	side_destroy(&s);
}

/* Programs give a queue pair the flags of its region, as rdma-core's tests of on-demand paging do.
 */
static void test_flags_of_regions_are_accepted(void)
{
	struct ibv_qp_attr attr;
	struct side s = {0};
	int mask;

	side_create(&s, IBV_QPT_RC, 0);
	mask = side_attr(&s, &s, IBV_QPS_INIT, &attr);
	attr.qp_access_flags |= IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED;
	rule_errno(0, ibv_modify_qp(s.qp, &attr, mask),
		   "a queue pair may have the access flags of an on-demand region");
	attr.qp_access_flags |= IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB;
	rule_errno(0, ibv_modify_qp(s.qp, &attr, mask),
		   "a queue pair may have access flags that have no effect");
	side_destroy(&s);
}

static void test_query_returns_attributes(void)
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
	     "a query returns the state");
	rule(got.port_num == PORT && got.pkey_index == 0, "a query returns port and P_Key index");
	rule(got.qp_access_flags == attr.qp_access_flags, "a query returns the access rights");
	mask = side_attr(&s, &s, IBV_QPS_RTR, &attr);
	attr.rq_psn = 0x123456;
	attr.ah_attr.grh.traffic_class = 0x28;
	attr.ah_attr.grh.flow_label = 0x12345;
	attr.ah_attr.sl = 3;
	MUST(!ibv_modify_qp(s.qp, &attr, mask));
	MUST(!ibv_query_qp(s.qp, &got, 0xffff, &init));
	rule(got.path_mtu == attr.path_mtu && got.dest_qp_num == s.qp->qp_num &&
		     got.rq_psn == 0x123456,
	     "a query returns path MTU, destination and first PSN");
	rule(got.max_dest_rd_atomic == 4 && got.min_rnr_timer == 1,
	     "a query returns the responder resources and the RNR timer");
	rule(got.ah_attr.is_global && got.ah_attr.port_num == PORT && got.ah_attr.sl == 3 &&
		     !memcmp(&got.ah_attr.grh.dgid, &hca.gid, sizeof(hca.gid)) &&
		     got.ah_attr.grh.sgid_index == hca.gid_index &&
		     got.ah_attr.grh.traffic_class == 0x28 && got.ah_attr.grh.flow_label == 0x12345,
	     "a query returns the path");
	mask = side_attr(&s, &s, IBV_QPS_RTS, &attr);
	attr.sq_psn = 0x654321;
	attr.timeout = 15;
	attr.retry_cnt = 5;
	attr.rnr_retry = 6;
	MUST(!ibv_modify_qp(s.qp, &attr, mask));
	MUST(!ibv_query_qp(s.qp, &got, 0xffff, &init));
	rule(got.sq_psn == 0x654321 && got.timeout == 15 && got.retry_cnt == 5 &&
		     got.rnr_retry == 6 && got.max_rd_atomic == 4,
	     "a query returns the requester's attributes");
	MUST(!side_step(&s, NULL, IBV_QPS_SQD));
	await_drained(&s, &got);
	rule(got.qp_state == IBV_QPS_SQD, "an idle QP drains in SQD");
	attr.cur_qp_state = IBV_QPS_RTS;
	attr.qp_state = IBV_QPS_RTS;
	rule_errno(EINVAL, ibv_modify_qp(s.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE),
		   "a wrong current state is refused");
}

const struct test qp_state_tests[] = {
	{"rc", test_transitions_of_rc},
	{"uc", test_transitions_of_uc},
	{"ud", test_transitions_of_ud},
	{"ranges", test_values_out_of_range_are_refused},
	{"retries", test_high_retry_counts_are_accepted},
	{"psn", test_psns_have_24_bits},
	{"region_flags", test_flags_of_regions_are_accepted},
	{"query", test_query_returns_attributes},
	{NULL, NULL},
};
