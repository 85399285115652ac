/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QP transitions: every pair of states, and every attribute that a transition
 * requires, allows or forbids (IBA volume 1, 10.3.1 and table 96).
 */
#include <errno.h>
#include <string.h>

#include "engine.h"

#define M(name)  URXE_QP_##name
#define RC       (1u << URXE_QPT_RC)
#define UC       (1u << URXE_QPT_UC)
#define UD       (1u << URXE_QPT_UD)
#define ALL      (RC | UC | UD)
#define ALL_BITS 22 /* one more than the number of attributes */

struct rule {
	uint8_t from, to;
	uint8_t types;
	uint32_t required, optional;
};

static const struct rule rules[] = {
	{URXE_QPS_RESET, URXE_QPS_INIT, RC | UC, M(PKEY_INDEX) | M(PORT) | M(ACCESS_FLAGS), 0},
	{URXE_QPS_RESET, URXE_QPS_INIT, UD, M(PKEY_INDEX) | M(PORT) | M(QKEY), 0},
	{URXE_QPS_INIT, URXE_QPS_INIT, RC | UC, 0, M(PKEY_INDEX) | M(PORT) | M(ACCESS_FLAGS)},
	{URXE_QPS_INIT, URXE_QPS_INIT, UD, 0, M(PKEY_INDEX) | M(PORT) | M(QKEY)},
	{URXE_QPS_INIT, URXE_QPS_RTR, RC,
	 M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN) | M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER),
	 M(ACCESS_FLAGS) | M(PKEY_INDEX)},
	{URXE_QPS_INIT, URXE_QPS_RTR, UC, M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN),
	 M(ACCESS_FLAGS) | M(PKEY_INDEX)},
	{URXE_QPS_INIT, URXE_QPS_RTR, UD, 0, M(PKEY_INDEX) | M(QKEY)},
	{URXE_QPS_RTR, URXE_QPS_RTS, RC,
	 M(TIMEOUT) | M(RETRY_CNT) | M(RNR_RETRY) | M(SQ_PSN) | M(MAX_QP_RD_ATOMIC),
	 M(CUR_STATE) | M(ACCESS_FLAGS) | M(MIN_RNR_TIMER) | M(PATH_MIG_STATE) | M(RATE_LIMIT)},
	{URXE_QPS_RTR, URXE_QPS_RTS, UC, M(SQ_PSN),
	 M(CUR_STATE) | M(ACCESS_FLAGS) | M(PATH_MIG_STATE) | M(RATE_LIMIT)},
	{URXE_QPS_RTR, URXE_QPS_RTS, UD, M(SQ_PSN), M(CUR_STATE) | M(QKEY) | M(RATE_LIMIT)},
	{URXE_QPS_RTS, URXE_QPS_RTS, RC, 0,
	 M(CUR_STATE) | M(ACCESS_FLAGS) | M(MIN_RNR_TIMER) | M(PATH_MIG_STATE) | M(RATE_LIMIT)},
	{URXE_QPS_RTS, URXE_QPS_RTS, UC, 0,
	 M(CUR_STATE) | M(ACCESS_FLAGS) | M(PATH_MIG_STATE) | M(RATE_LIMIT)},
	{URXE_QPS_RTS, URXE_QPS_RTS, UD, 0, M(CUR_STATE) | M(QKEY) | M(RATE_LIMIT)},
	{URXE_QPS_RTS, URXE_QPS_SQD, ALL, 0, M(EN_SQD_ASYNC_NOTIFY)},
	{URXE_QPS_SQD, URXE_QPS_RTS, RC, 0,
	 M(CUR_STATE) | M(ACCESS_FLAGS) | M(MIN_RNR_TIMER) | M(PATH_MIG_STATE)},
	{URXE_QPS_SQD, URXE_QPS_RTS, UC, 0, M(CUR_STATE) | M(ACCESS_FLAGS) | M(PATH_MIG_STATE)},
	{URXE_QPS_SQD, URXE_QPS_RTS, UD, 0, M(CUR_STATE) | M(QKEY)},
	{URXE_QPS_SQD, URXE_QPS_SQD, RC, 0,
	 M(PORT) | M(AV) | M(TIMEOUT) | M(RETRY_CNT) | M(RNR_RETRY) | M(MAX_QP_RD_ATOMIC) |
		 M(MAX_DEST_RD_ATOMIC) | M(ACCESS_FLAGS) | M(PKEY_INDEX) | M(MIN_RNR_TIMER) |
		 M(PATH_MIG_STATE)},
	{URXE_QPS_SQD, URXE_QPS_SQD, UC, 0,
	 M(AV) | M(ACCESS_FLAGS) | M(PKEY_INDEX) | M(PATH_MIG_STATE)},
	{URXE_QPS_SQD, URXE_QPS_SQD, UD, 0, M(PKEY_INDEX) | M(QKEY)},
	{URXE_QPS_SQE, URXE_QPS_RTS, UC, 0, M(CUR_STATE) | M(ACCESS_FLAGS)},
	{URXE_QPS_SQE, URXE_QPS_RTS, UD, 0, M(CUR_STATE) | M(QKEY)},
};

/*
 * NULL: the transition is forbidden. Transitions to RESET and ERR are allowed from every state,
 * without attributes.
 */
static const struct rule *find_rule(uint8_t type, uint8_t from, uint8_t to)
{
	static const struct rule any;

	if (to == URXE_QPS_RESET || to == URXE_QPS_ERR)
		return &any;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].from == from && rules[i].to == to && rules[i].types & 1u << type)
			return &rules[i];
	return NULL;
}

struct bench {
	struct pair *pair;
	struct conn_attr conn;
	struct endpoint end;
	struct urxe_qp_attr attr; /* a valid value for every attribute */
};

static void bench_open(struct bench *b, uint8_t type)
{
	b->pair = pair_create(&(struct pair_attr){.seed = 1, .mem_size = 65536});
	b->conn = conn_default(type);
	b->attr = conn_qp_attr(&b->conn, 0, b->pair->node[1], 0x2000);
}

static int step(struct bench *b, uint8_t to, uint32_t mask)
{
	b->attr.state = to;
	return urxe_qp_modify(b->end.qp, b->pair->now, &b->attr, mask);
}

/* A send request whose lkey is invalid moves a UC or UD QP to SQE (IBA 9.9.2.4). */
static void fail_send(struct bench *b)
{
	struct urxe_seg seg = {.addr = 1, .length = 8, .lkey = 0x0bad0bad};
	struct urxe_path path = b->attr.path;
	struct urxe_send_wr wr = {
		.opcode = URXE_WR_SEND, .segs = &seg, .n_segs = 1, .path = &path, .remote_qpn = 2};

	assert_int_equal(urxe_post_send(b->end.qp, &wr), 0);
	pair_settle(b->pair);
}

/* A new QP in the state. False: QPs of this type do not have the state. */
static bool bench_enter(struct bench *b, uint8_t state)
{
	uint8_t stop = state == URXE_QPS_ERR  ? URXE_QPS_RESET
		       : state > URXE_QPS_RTS ? URXE_QPS_RTS
					      : state;

	if (state == URXE_QPS_SQE && b->conn.type == URXE_QPT_RC)
		return false;
	conn_create(b->pair, &b->conn, 0, &b->end);
	for (uint8_t to = URXE_QPS_INIT; to <= stop; to++)
		assert_int_equal(step(b, to, conn_mask(b->conn.type, to)), 0);
	if (state == URXE_QPS_SQE)
		fail_send(b);
	else if (state > URXE_QPS_RTS)
		assert_int_equal(step(b, state, M(STATE)), 0);
	assert_int_equal(qp_state(&b->end), state);
	b->attr.cur_state = state;
	return true;
}

/* The engine refuses the transition, and no attribute changes (IBA 11.2.5.2). */
static void check_refused(struct bench *b, uint8_t to, uint32_t mask)
{
	struct urxe_qp_attr before, after;
	struct urxe_qp_init init;
	int rc;

	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	urxe_qp_query(b->end.qp, &before, &init);
	b->attr.qkey ^= 0xffff;
	b->attr.access ^= URXE_ACCESS_REMOTE_READ;
	b->attr.sq_psn ^= 1;
	b->attr.rq_psn ^= 1;
	rc = step(b, to, mask);
	if (rc != -EINVAL)
		fail_msg("type %u, %u to %u, mask %x: %d", b->conn.type, before.state, to, mask,
			 rc);
	urxe_qp_query(b->end.qp, &after, &init);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void check_accepted(struct bench *b, uint8_t from, uint8_t to, uint32_t mask)
{
	int rc = step(b, to, mask);

	if (rc)
		fail_msg("type %u, %u to %u, mask %x: %d", b->conn.type, from, to, mask, rc);
	assert_int_equal(qp_state(&b->end), to);
}

/* One QP serves all refused transitions; each accepted transition needs a new QP. */
static void check_rule(struct bench *b, const struct rule *rule, uint8_t from, uint8_t to)
{
	uint32_t required = rule->required | M(STATE);

	for (unsigned bit = 1; bit < ALL_BITS; bit++) {
		uint32_t attribute = 1u << bit;

		if (attribute == M(ALT_PATH)) /* test_migration */
			continue;
		if (!bench_enter(b, from))
			return;
		if (rule->required & attribute)
			check_refused(b, to, required & ~attribute);
		else if (rule->optional & attribute)
			check_accepted(b, from, to, required | attribute);
		else
			check_refused(b, to, required | attribute);
		urxe_qp_destroy(b->end.qp);
	}
	bench_enter(b, from);
	check_accepted(b, from, to, required | rule->optional);
	urxe_qp_destroy(b->end.qp);
}

static void check_forbidden(struct bench *b, uint8_t from, uint8_t to)
{
	if (!bench_enter(b, from))
		return;
	check_refused(b, to, M(STATE));
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].types & 1u << b->conn.type)
			check_refused(b, to, M(STATE) | rules[i].required | rules[i].optional);
	urxe_qp_destroy(b->end.qp);
}

static void test_transitions_follow_table_96(void **state)
{
	(void)state;
	for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UD; type++) {
		struct bench b;

		bench_open(&b, type);
		for (uint8_t from = 0; from < URXE_QPS_COUNT; from++)
			for (uint8_t to = 0; to < URXE_QPS_COUNT; to++) {
				const struct rule *rule = find_rule(type, from, to);

				if (rule)
					check_rule(&b, rule, from, to);
				else
					check_forbidden(&b, from, to);
			}
		pair_destroy(b.pair);
	}
}

/* A target state that does not exist, and a current state that is not the QP's. */
static void test_wrong_states_are_refused(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, URXE_QPT_RC);
	bench_enter(&b, URXE_QPS_RTS);
	check_refused(&b, URXE_QPS_COUNT, M(STATE));
	check_refused(&b, 255, M(STATE));
	b.attr.cur_state = URXE_QPS_SQD;
	check_refused(&b, URXE_QPS_RTS, M(STATE) | M(CUR_STATE));
	pair_destroy(b.pair);
}

struct range {
	const char *what;
	uint8_t from;
	size_t offset;
	size_t size;
	uint32_t best, worst; /* last accepted value and first refused value */
};

#define RANGE(from, field, best, worst)                                        \
	{                                                                      \
#field, URXE_QPS_##from, offsetof(struct urxe_qp_attr, field), \
			sizeof(((struct urxe_qp_attr *)0)->field), best, worst \
	}

static const struct range ranges[] = {
	RANGE(RESET, port, 1, 0),
	RANGE(RESET, port, 1, 2),
	RANGE(RESET, pkey_index, 0, 1),
	RANGE(RESET, access, NODE_ACCESS, 0x80000000),
	RANGE(RESET, access, NODE_ACCESS | URXE_ACCESS_ON_DEMAND, 0x80000000),
	RANGE(INIT, path_mtu, URXE_MTU_256, 0),
	RANGE(INIT, path_mtu, URXE_MTU_4096, 6),
	RANGE(INIT, path_mtu, URXE_MTU_4096, 255),
	RANGE(INIT, dest_qpn, 0xffffff, 0x1000000),
	RANGE(INIT, rq_psn, 0xffffff, 0x1000000),
	RANGE(INIT, max_dest_rd_atomic, URXE_MAX_RD_ATOMIC, URXE_MAX_RD_ATOMIC + 1),
	RANGE(INIT, path.sgid_index, NODE_SGID(URXE_NET_IPV4), 3), /* an empty entry */
	RANGE(INIT, path.sgid_index, 0, URXE_MAX_GIDS),
	RANGE(INIT, path.sgid_index, 0, 255),
	RANGE(INIT, path.sl, 7, 8),
	RANGE(INIT, path.flow_label, 0xfffff, 0x100000),
	RANGE(RTR, timeout, 31, 32),
	RANGE(RTR, sq_psn, 0xffffff, 0x1000000),
	RANGE(RTR, max_rd_atomic, URXE_MAX_RD_ATOMIC, URXE_MAX_RD_ATOMIC + 1),
};

static void put_field(struct urxe_qp_attr *attr, const struct range *range, uint32_t value)
{
	memcpy((uint8_t *)attr + range->offset, &value, range->size); /* little endian */
}

static void test_values_out_of_range_are_refused(void **state)
{
	struct bench b;

	(void)state;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *r = &ranges[i];
		uint32_t mask;
		int rc;

		bench_open(&b, URXE_QPT_RC);
		mask = conn_mask(URXE_QPT_RC, r->from + 1);
		bench_enter(&b, r->from);
		put_field(&b.attr, r, r->worst);
		rc = step(&b, r->from + 1, mask);
		if (rc != -EINVAL)
			fail_msg("%s %x: %d", r->what, r->worst, rc);
		assert_int_equal(qp_state(&b.end), r->from);
		put_field(&b.attr, r, r->best);
		rc = step(&b, r->from + 1, mask);
		if (rc)
			fail_msg("%s %x: %d", r->what, r->best, rc);
		pair_destroy(b.pair);
	}
}

/* Programs give 10 or 255 for "often": Linux and its drivers of RoCE devices take that. */
static void test_high_retry_counts_and_rnr_timers_are_cut(void **state)
{
	struct urxe_qp_init init;
	struct urxe_qp_attr got;
	struct bench b;

	(void)state;
	bench_open(&b, URXE_QPT_RC);
	bench_enter(&b, URXE_QPS_INIT);
	b.attr.min_rnr_timer = 44;
	b.attr.retry_cnt = 255;
	b.attr.rnr_retry = 10;
	assert_int_equal(step(&b, URXE_QPS_RTR, conn_mask(URXE_QPT_RC, URXE_QPS_RTR)), 0);
	assert_int_equal(step(&b, URXE_QPS_RTS, conn_mask(URXE_QPT_RC, URXE_QPS_RTS)), 0);
	urxe_qp_query(b.end.qp, &got, &init);
	assert_int_equal(got.min_rnr_timer, 12);
	assert_int_equal(got.retry_cnt, 7);
	assert_int_equal(got.rnr_retry, 7);
	pair_destroy(b.pair);
}

/*
 * These transitions allow path migration, which the engine does not have: it accepts only the state
 * "migrated".
 */
static void test_only_migrated_state_is_accepted(void **state)
{
	static const struct {
		uint8_t from, to;
	} rows[] = {{URXE_QPS_RTR, URXE_QPS_RTS},
		    {URXE_QPS_RTS, URXE_QPS_RTS},
		    {URXE_QPS_SQD, URXE_QPS_RTS},
		    {URXE_QPS_SQD, URXE_QPS_SQD}};
	struct bench b;

	(void)state;
	for (uint8_t type = URXE_QPT_RC; type <= URXE_QPT_UD; type++) {
		int refused = type == URXE_QPT_UD ? -EINVAL : -EOPNOTSUPP;

		bench_open(&b, type);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			uint32_t mask = rows[i].from == URXE_QPS_RTR ? conn_mask(type, URXE_QPS_RTS)
								     : (uint32_t)M(STATE);

			bench_enter(&b, rows[i].from);
			assert_int_equal(step(&b, rows[i].to, mask | M(ALT_PATH)), refused);
			b.attr.path_mig_state = URXE_MIG_REARM;
			assert_int_equal(step(&b, rows[i].to, mask | M(PATH_MIG_STATE)), refused);
			b.attr.path_mig_state = URXE_MIG_ARMED;
			assert_int_equal(step(&b, rows[i].to, mask | M(PATH_MIG_STATE)), refused);
			b.attr.path_mig_state = URXE_MIG_ARMED + 1;
			assert_int_equal(step(&b, rows[i].to, mask | M(PATH_MIG_STATE)), -EINVAL);
			b.attr.path_mig_state = URXE_MIG_MIGRATED;
			assert_int_equal(qp_state(&b.end), rows[i].from);
			urxe_qp_destroy(b.end.qp);
		}
		bench_enter(&b, URXE_QPS_INIT);
		assert_int_equal(
			step(&b, URXE_QPS_RTR, conn_mask(type, URXE_QPS_RTR) | M(ALT_PATH)),
			refused);
		assert_int_equal(step(&b, URXE_QPS_INIT, M(STATE) | M(ALT_PATH)), -EINVAL);
		pair_destroy(b.pair);
	}
}

/* A path MTU larger than the port's frames. */
static void test_path_mtu_is_limited_by_the_port(void **state)
{
	struct bench b = {.conn = conn_default(URXE_QPT_RC)};

	(void)state;
	b.pair = pair_create(&(struct pair_attr){.seed = 1, .mtu = 1500, .mem_size = 65536});
	b.attr = conn_qp_attr(&b.conn, 0, b.pair->node[1], 0x2000);
	bench_enter(&b, URXE_QPS_INIT);
	b.attr.path_mtu = URXE_MTU_2048;
	assert_int_equal(step(&b, URXE_QPS_RTR, conn_mask(URXE_QPT_RC, URXE_QPS_RTR)), -EINVAL);
	b.attr.path_mtu = URXE_MTU_1024;
	assert_int_equal(step(&b, URXE_QPS_RTR, conn_mask(URXE_QPT_RC, URXE_QPS_RTR)), 0);
	pair_destroy(b.pair);
}

/* The MTU of the link may change, but never exceeds the device's maximum. */
static void test_link_mtu_stays_below_the_maximum(void **state)
{
	const uint32_t mask = conn_mask(URXE_QPT_RC, URXE_QPS_RTR);
	struct bench b = {.conn = conn_default(URXE_QPT_RC)};
	struct urxe_dev *dev;

	(void)state;
	b.pair = pair_create(&(struct pair_attr){.seed = 1, .mtu = 4200, .mem_size = 65536});
	dev = b.pair->node[0]->dev;
	b.attr = conn_qp_attr(&b.conn, 0, b.pair->node[1], 0x2000);
	assert_int_equal(urxe_link_mtu_set(dev, 4201), -EINVAL);
	assert_int_equal(urxe_link_mtu_set(dev, 1500), 0);
	bench_enter(&b, URXE_QPS_INIT);
	b.attr.path_mtu = URXE_MTU_2048;
	assert_int_equal(step(&b, URXE_QPS_RTR, mask), -EINVAL);
	assert_int_equal(urxe_link_mtu_set(dev, 4200), 0);
	assert_int_equal(step(&b, URXE_QPS_RTR, mask), 0);
	/* A link MTU too small for any path MTU: only the smallest path MTU is accepted. */
	assert_int_equal(urxe_link_mtu_set(dev, 68), 0);
	bench_enter(&b, URXE_QPS_INIT);
	b.attr.path_mtu = URXE_MTU_512;
	assert_int_equal(step(&b, URXE_QPS_RTR, mask), -EINVAL);
	b.attr.path_mtu = URXE_MTU_256;
	assert_int_equal(step(&b, URXE_QPS_RTR, mask), 0);
	pair_destroy(b.pair);
}

/* urxe_qp_query returns the attributes that were set. */
static void test_query_returns_set_attributes(void **state)
{
	struct urxe_qp_attr got;
	struct urxe_qp_init init;
	struct bench b;

	(void)state;
	bench_open(&b, URXE_QPT_RC);
	bench_enter(&b, URXE_QPS_RTS);
	urxe_qp_query(b.end.qp, &got, &init);
	assert_int_equal(got.cur_state, URXE_QPS_RTS);
	assert_int_equal(got.path_mtu, b.attr.path_mtu);
	assert_int_equal(got.timeout, b.attr.timeout);
	assert_int_equal(got.retry_cnt, b.attr.retry_cnt);
	assert_int_equal(got.rnr_retry, b.attr.rnr_retry);
	assert_int_equal(got.min_rnr_timer, b.attr.min_rnr_timer);
	assert_int_equal(got.max_rd_atomic, b.attr.max_rd_atomic);
	assert_int_equal(got.max_dest_rd_atomic, b.attr.max_dest_rd_atomic);
	assert_int_equal(got.port, 1);
	assert_int_equal(got.access, b.attr.access);
	assert_int_equal(got.dest_qpn, b.attr.dest_qpn);
	assert_int_equal(got.rq_psn, b.attr.rq_psn);
	assert_int_equal(got.sq_psn, b.attr.sq_psn);
	assert_memory_equal(&got.path, &b.attr.path, sizeof(got.path));
	assert_int_equal(init.type, URXE_QPT_RC);
	assert_int_equal(init.pd, NODE_PD);
	assert_ptr_equal(init.ctx, &b.end.queue);
	assert_true(init.cap.max_send_wr >= b.conn.cap.max_send_wr);
	pair_destroy(b.pair);
}

/* In SQD, the initiator depth cannot fall while requests in the queue need it. */
static void test_depth_cannot_fall_below_queued_requests(void **state)
{
	struct urxe_send_wr wr = {.opcode = URXE_WR_RDMA_READ};
	struct bench b;

	(void)state;
	bench_open(&b, URXE_QPT_RC);
	bench_enter(&b, URXE_QPS_SQD);
	b.attr.max_rd_atomic = 0;
	assert_int_equal(step(&b, URXE_QPS_SQD, URXE_QP_MAX_QP_RD_ATOMIC), 0);
	b.attr.max_rd_atomic = 1;
	assert_int_equal(step(&b, URXE_QPS_SQD, URXE_QP_MAX_QP_RD_ATOMIC), 0);
	assert_int_equal(urxe_post_send(b.end.qp, &wr), 0);
	b.attr.max_rd_atomic = 0;
	assert_int_equal(step(&b, URXE_QPS_SQD, URXE_QP_MAX_QP_RD_ATOMIC), -EINVAL);
	pair_destroy(b.pair);
}

/* Attributes whose values have another meaning, and send windows that PSNs cannot span. */
static void test_reserved_qpn_and_too_large_window_are_refused(void **state)
{
	struct urxe_qp_init init;
	struct urxe_qp_attr attr;
	struct urxe_dev *dev;
	struct urxe_qp *qp;
	struct bench b;

	(void)state;
	bench_open(&b, URXE_QPT_RC);
	bench_enter(&b, URXE_QPS_INIT);
	urxe_qp_query(b.end.qp, &attr, &init);
	init.qpn = 0xffffff;
	assert_int_equal(urxe_qp_create(b.pair->node[0]->dev, &init, &qp), -EINVAL);
	assert_int_equal(urxe_dev_create(&(struct urxe_dev_attr){.ops = &(struct urxe_ops){0},
								 .mtu = 1500,
								 .max_packets = (1 << 22) + 1},
					 &dev),
			 -EINVAL);
	pair_destroy(b.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transitions_follow_table_96),
		cmocka_unit_test(test_wrong_states_are_refused),
		cmocka_unit_test(test_values_out_of_range_are_refused),
		cmocka_unit_test(test_path_mtu_is_limited_by_the_port),
		cmocka_unit_test(test_link_mtu_stays_below_the_maximum),
		cmocka_unit_test(test_query_returns_set_attributes),
		cmocka_unit_test(test_depth_cannot_fall_below_queued_requests),
		cmocka_unit_test(test_reserved_qpn_and_too_large_window_are_refused),
		cmocka_unit_test(test_high_retry_counts_and_rnr_timers_are_cut),
		cmocka_unit_test(test_only_migrated_state_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
