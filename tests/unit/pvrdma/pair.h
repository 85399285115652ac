/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two guests with a cable between their devices, one CQ, one QP and one buffer each. */
#ifndef URXE_TEST_PVRDMA_PAIR_H
#define URXE_TEST_PVRDMA_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "pvrdma_driver.h"

#define ALL_ACCESS 15u /* local write, remote write, read and atomic */
#define BUFFER     0x40000u
#define VA         UINT64_C(0x7f1234500123) /* no multiple of anything */

struct pair {
	struct guest guest[2];
	struct cq cq[2];
	struct qp qp[2];
	struct buffer buffer[2];
	struct net net;
};

struct pair_attr {
	uint8_t type;
	uint8_t net; /* enum urxe_net; RoCEv1 is 0 */
	uint32_t cqe;
	uint32_t wr;
	struct srq *srq; /* of guest 1 */
};

static inline void pair_open_queues(struct pair *p, const struct pair_attr *attr)
{
	for (int i = 0; i < 2; i++) {
		const struct qp_attr qp = {.type = attr->type,
					   .send_wr = attr->wr,
					   .recv_wr = attr->wr,
					   .send_cq = &p->cq[i],
					   .recv_cq = &p->cq[i],
					   .srq = i ? attr->srq : NULL};

		cq_open(&p->guest[i], &p->cq[i], attr->cqe ? attr->cqe : 64);
		qp_open(&p->guest[i], &p->qp[i], &qp);
		buffer_open(&p->guest[i], &p->buffer[i], VA + i * 0x1000000u, BUFFER, ALL_ACCESS);
	}
	for (int i = 0; i < 2; i++) {
		if (attr->type == PV_QPT_RC)
			qp_connect(&p->guest[i], &p->qp[i], &p->guest[!i], &p->qp[!i]);
		else
			qp_datagram(&p->guest[i], &p->qp[i]);
	}
}

static inline void pair_open_guests(struct pair *p, enum urxe_net net)
{
	for (uint8_t i = 0; i < 2; i++) {
		guest_open(&p->guest[i], &(struct guest_attr){.id = (uint8_t)(i + 1),
							      .roce_v1 = net == URXE_NET_ROCEV1,
							      .ipv6 = net == URXE_NET_IPV6});
		guest_start(&p->guest[i]);
		p->net.guest[i] = &p->guest[i];
	}
}

static inline void pair_open(struct pair *p, const struct pair_attr *attr)
{
	*p = (struct pair){0};
	pair_open_guests(p, attr->net);
	pair_open_queues(p, attr);
}

static inline void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		guest_pages_free(&p->cq[i].pages);
		guest_pages_free(&p->qp[i].pages);
		guest_pages_free(&p->buffer[i].pages);
		guest_close(&p->guest[i]);
	}
}

/* A test of cmocka whose state is a pair with RC queue pairs. */
#define PAIR_TEST(test) cmocka_unit_test_setup_teardown(test, pair_setup, pair_teardown)

static inline int pair_setup(void **state)
{
	static struct pair p;

	pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	*state = &p;
	return 0;
}

static inline int pair_teardown(void **state)
{
	pair_close(*state);
	return 0;
}

/* RC queue pairs, one of which has failed. */
static inline void reconnect(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(qp_to(&p->guest[i], &p->qp[i], URXE_QPS_RESET), 0);
	for (int i = 0; i < 2; i++)
		qp_connect(&p->guest[i], &p->qp[i], &p->guest[!i], &p->qp[!i]);
}

/* The first table of a page directory: addresses of pages. */
static inline uint64_t *table_of(const struct guest *g, const struct pages *pages)
{
	return guest_at(g, *(uint64_t *)guest_at(g, pages->dir));
}

static inline struct pvrdma_cqe expect_cqe(struct pair *p, int side, uint64_t wr_id,
					   uint32_t status, uint32_t opcode)
{
	struct pvrdma_cqe cqe;

	assert_true(cq_poll(&p->guest[side], &p->cq[side], &cqe));
	assert_int_equal(cqe.wr_id, wr_id);
	assert_int_equal(cqe.status, status);
	assert_int_equal(cqe.qp, p->qp[side].handle);
	if (status == PVRDMA_WC_SUCCESS)
		assert_int_equal(cqe.opcode, opcode);
	return cqe;
}

static inline void expect_no_cqe(struct pair *p, int side)
{
	struct pvrdma_cqe cqe;

	assert_false(cq_poll(&p->guest[side], &p->cq[side], &cqe));
}

/* A signaled request of guest 0 with one segment of its buffer, to the peer's buffer. */
static inline struct pvrdma_sq_wqe_hdr rdma_header(const struct pair *p, uint32_t opcode,
						   uint64_t remote_offset)
{
	return (struct pvrdma_sq_wqe_hdr){
		.wr_id = 1,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = p->buffer[1].va + remote_offset,
			    .rkey = p->buffer[1].key},
	};
}

/* Posts the request with one segment, and runs the cable. */
static inline void execute(struct pair *p, const struct pvrdma_sq_wqe_hdr *header, uint64_t offset,
			   uint32_t length)
{
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[0], offset, length);

	qp_post_send(&p->guest[0], &p->qp[0], header, &sge);
	net_run(&p->net);
}

/* Status of a WRITE of guest 0 by a key. */
static inline uint32_t write_status(struct pair *p, uint64_t addr, uint32_t length, uint32_t key)
{
	struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	struct pvrdma_cqe cqe;

	header.wr.rdma.remote_addr = addr;
	header.wr.rdma.rkey = key;
	execute(p, &header, 0, length);
	assert_true(cq_poll(&p->guest[0], &p->cq[0], &cqe));
	return cqe.status;
}

/* Opens n RC queue pairs in the first machine, and connects the last one with the pair's queue pair
 * in the second machine. */
static inline void pair_connect_last(struct pair *p, struct qp *qps, uint32_t n)
{
	const struct qp_attr attr = {
		.type = PV_QPT_RC, .sge = 1, .send_cq = &p->cq[0], .recv_cq = &p->cq[0]};

	for (uint32_t i = 0; i < n; i++)
		qp_open(&p->guest[0], &qps[i], &attr);
	qp_connect(&p->guest[0], &qps[n - 1], &p->guest[1], &p->qp[1]);
}

static inline void pair_post_recv(struct pair *p, int side, uint64_t wr_id, uint64_t offset,
				  uint32_t length)
{
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[side], offset, length);

	qp_post_recv(&p->guest[side], &p->qp[side], wr_id, &sge, 1);
}

static inline struct pvrdma_sq_wqe_hdr datagram_header(const struct pair *p, int from)
{
	struct pvrdma_sq_wqe_hdr header = {
		.wr_id = 1,
		.num_sge = 1,
		.opcode = PVRDMA_WR_SEND,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.ud = {.remote_qpn = p->qp[!from].qpn, .remote_qkey = GUEST_QKEY},
	};

	qp_av(&p->guest[from], &p->guest[!from], &header.wr.ud.av);
	return header;
}

#endif
