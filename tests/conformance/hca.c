/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "rule.h"

#define QUIET_MS 100 /* longer than a message within a host takes */

struct hca hca = {.gid_index = -1, .many = 65536};

struct ibv_device *hca_find(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	/* The list is not freed, because it owns the device. */
	for (; list && *list; list++)
		if (!name || !strcmp(ibv_get_device_name(*list), name))
			return *list;
	return NULL;
}

static bool is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static int choose_gid(void)
{
	struct ibv_gid_entry entry;

	for (int i = 0; i < hca.port.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(hca.context, PORT, (uint32_t)i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !is_link_local(&entry.gid))
			return i;
	return 0;
}

void hca_open(void)
{
	hca.context = ibv_open_device(hca_find(hca.name));
	MUST(hca.context);
	MUST(!ibv_query_device(hca.context, &hca.attr));
	MUST(!ibv_query_port(hca.context, PORT, &hca.port));
	if (hca.gid_index < 0)
		hca.gid_index = choose_gid();
	MUST(!ibv_query_gid(hca.context, PORT, hca.gid_index, &hca.gid));
	hca.pd = ibv_alloc_pd(hca.context);
	MUST(hca.pd);
}

int limit_of(int advertised)
{
	return advertised < hca.many ? advertised : hca.many;
}

/* --- Queue pairs */

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_qp *create_qp(const struct side *s, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.qp_type = type,
		.cap = {.max_send_wr = SIDE_DEPTH,
			.max_recv_wr = SIDE_DEPTH,
			.max_send_sge = SIDE_SGES,
			.max_recv_sge = SIDE_SGES,
			.max_inline_data = 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = hca.pd,
		.send_ops_flags = ops,
	};

	if (ops)
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	return ibv_create_qp_ex(hca.context, &init);
}

static struct ibv_ah *create_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = PORT,
		.grh = {.dgid = hca.gid, .sgid_index = (uint8_t)hca.gid_index, .hop_limit = 64},
	};

	return ibv_create_ah(hca.pd, &attr);
}

void hca_lacks(const char *feature)
{
	if (hca.partial)
		skip("the driver has no %s", feature);
	must_fail(__FILE__, __LINE__, feature);
}

bool hca_has(enum ibv_qp_type type)
{
	struct ibv_cq *cq = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = type};
	struct ibv_qp *qp;
	bool lacks;

	MUST(cq);
	qp = ibv_create_qp(hca.pd, &init);
	lacks = !qp && errno == EOPNOTSUPP;
	MUST(!qp || !ibv_destroy_qp(qp));
	MUST(!ibv_destroy_cq(cq));
	return !lacks || !hca.partial;
}

void side_create(struct side *s, enum ibv_qp_type type, uint64_t ops)
{
	if (!s->cq)
		s->cq = ibv_create_cq(hca.context, 4 * SIDE_DEPTH, NULL, NULL, 0);
	MUST(s->cq);
	s->qp = create_qp(s, type, ops);
	if (!s->qp && errno == EOPNOTSUPP)
		hca_lacks(ops ? "queue pairs with ibv_wr_*" : "queue pairs of this type");
	MUST(s->qp);
	s->qpx = ops ? ibv_qp_to_qp_ex(s->qp) : NULL;
	side_complete(s);
}

void side_complete(struct side *s)
{
	if (!s->mr)
		s->mr = ibv_reg_mr(hca.pd, s->room, sizeof(s->room), ACCESS);
	MUST(s->mr);
	if (s->qp->qp_type == IBV_QPT_UD && !s->ah)
		s->ah = create_ah();
	MUST(s->qp->qp_type != IBV_QPT_UD || s->ah);
}

static int init_attr(struct side *s, struct ibv_qp_attr *attr)
{
	attr->port_num = PORT;
	attr->qkey = QKEY;
	attr->qp_access_flags = ACCESS;
	return IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       (s->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

static int rtr_attr(struct side *s, const struct side *peer, struct ibv_qp_attr *attr)
{
	if (s->qp->qp_type == IBV_QPT_UD)
		return 0;
	attr->path_mtu = hca.port.active_mtu < IBV_MTU_1024 ? hca.port.active_mtu : IBV_MTU_1024;
	attr->dest_qp_num = peer->qp->qp_num;
	attr->max_dest_rd_atomic = 4;
	attr->min_rnr_timer = 1; /* 10 us */
	attr->ah_attr.is_global = 1;
	attr->ah_attr.port_num = PORT;
	attr->ah_attr.grh.dgid = hca.gid;
	attr->ah_attr.grh.sgid_index = (uint8_t)hca.gid_index;
	attr->ah_attr.grh.hop_limit = 64;
	return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       (s->qp->qp_type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
					     : 0);
}

static int rts_attr(struct side *s, struct ibv_qp_attr *attr)
{
	if (s->qp->qp_type != IBV_QPT_RC)
		return IBV_QP_SQ_PSN;
	attr->timeout = 14;
	attr->retry_cnt = 7;
	attr->rnr_retry = 7;
	attr->max_rd_atomic = 4;
	return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_MAX_QP_RD_ATOMIC;
}

int side_attr(struct side *s, const struct side *peer, enum ibv_qp_state to,
	      struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){.qp_state = to};
	switch (to) {
	case IBV_QPS_INIT: return IBV_QP_STATE | init_attr(s, attr);
	case IBV_QPS_RTR: return IBV_QP_STATE | rtr_attr(s, peer, attr);
	case IBV_QPS_RTS: return IBV_QP_STATE | rts_attr(s, attr);
	default: return IBV_QP_STATE;
	}
}

int side_step(struct side *s, const struct side *peer, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr;
	int mask = side_attr(s, peer, to, &attr);

	return ibv_modify_qp(s->qp, &attr, mask);
}

void side_up(struct side *s, const struct side *peer, enum ibv_qp_state to)
{
	for (enum ibv_qp_state at = IBV_QPS_INIT; at <= to; at++) {
		errno = side_step(s, peer, at);
		MUST(!errno);
	}
}

void side_destroy(struct side *s)
{
	MUST(!s->qp || !ibv_destroy_qp(s->qp));
	MUST(!s->ah || !ibv_destroy_ah(s->ah));
	MUST(!s->srq || !ibv_destroy_srq(s->srq));
	MUST(!s->mr || !ibv_dereg_mr(s->mr));
	MUST(!s->cq || !ibv_destroy_cq(s->cq));
}

enum ibv_qp_state side_state(const struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(!ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

static void fill_rooms(struct side pair[2])
{
	for (size_t i = 0; i < SIDE_ROOM; i++) {
		pair[0].room[i] = (uint8_t)(i * 7 + 1);
		pair[1].room[i] = (uint8_t)(i * 11 + 5);
	}
}

void pair_open(struct side pair[2], enum ibv_qp_type type, uint64_t ops)
{
	fill_rooms(pair);
	side_create(&pair[0], type, ops);
	side_create(&pair[1], type, ops);
	side_up(&pair[0], &pair[1], IBV_QPS_RTS);
	side_up(&pair[1], &pair[0], IBV_QPS_RTS);
}

void pair_close(struct side pair[2])
{
	side_destroy(&pair[0]);
	side_destroy(&pair[1]);
}

void pair_again(struct side pair[2])
{
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		MUST(!side_step(&pair[i], NULL, IBV_QPS_ERR));
	for (int i = 0; i < 2; i++) {
		while (any_wc(pair[i].cq, &wc))
			;
		MUST(!side_step(&pair[i], NULL, IBV_QPS_RESET));
	}
	side_up(&pair[0], &pair[1], IBV_QPS_RTS);
	side_up(&pair[1], &pair[0], IBV_QPS_RTS);
	fill_rooms(pair);
}

/* --- Requests and completions */

struct ibv_sge side_sge(const struct side *s, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)s->room + offset, length, s->mr->lkey};
}

struct ibv_send_wr side_wr(struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			   const struct side *remote)
{
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = sge ? 1 : 0,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};
	bool is_atomic =
		opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	if (s->qp->qp_type == IBV_QPT_UD) {
		if (remote)
			wr_to(&wr, s, remote);
	} else if (is_atomic && remote) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote->room;
		wr.wr.atomic.rkey = remote->mr->rkey;
	} else if (remote) {
		wr.wr.rdma.remote_addr = (uintptr_t)remote->room;
		wr.wr.rdma.rkey = remote->mr->rkey;
	}
	return wr;
}

void wr_to(struct ibv_send_wr *wr, const struct side *s, const struct side *to)
{
	wr->wr.ud.ah = s->ah;
	wr->wr.ud.remote_qpn = to->qp->qp_num;
	wr->wr.ud.remote_qkey = QKEY;
}

int post_send(struct side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(s->qp, wr, &bad);
}

int post_recv(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = side_sge(s, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = length ? 1 : 0}, *bad;

	return ibv_post_recv(s->qp, &wr, &bad);
}

int post_srq_recv(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = side_sge(s, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = length ? 1 : 0}, *bad;

	return ibv_post_srq_recv(s->srq, &wr, &bad);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t ms)
{
	uint64_t end = now_ms() + ms;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		MUST(n >= 0);
	} while (!n && now_ms() < end);
	return n;
}

bool await_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	return wait_wc(cq, wc, WAIT_MS);
}

struct ibv_wc next_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	MUST(await_wc(cq, &wc));
	return wc;
}

bool any_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	return wait_wc(cq, wc, QUIET_MS);
}

static bool wait_event(struct ibv_async_event *event, int ms)
{
	struct pollfd pfd = {hca.context->async_fd, POLLIN, 0};

	if (poll(&pfd, 1, ms) != 1)
		return false;
	MUST(!ibv_get_async_event(hca.context, event));
	ibv_ack_async_event(event);
	return true;
}

bool next_event(struct ibv_async_event *event)
{
	return wait_event(event, WAIT_MS);
}

bool any_event(struct ibv_async_event *event)
{
	return wait_event(event, 0);
}
