/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagrams (IBA 9.8.3), and address handles made from received datagrams. */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "hca.h"
#include "privilege.h"
#include "rule.h"
#include "suite.h"

#define GRH 40

static struct side pair[2];

static uint32_t mtu(void)
{
	return 128u << hca.port.active_mtu;
}

static struct ibv_sge one_sge;

static struct ibv_send_wr datagram(uint32_t length)
{
	one_sge = side_sge(&pair[0], 0, length);
	return side_wr(&pair[0], IBV_WR_SEND, &one_sge, &pair[1]);
}

static void test_datagrams(void)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UD, 0);
	wr = datagram(200);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(12);
	MUST(!post_recv(&pair[1], 1, 0, 1000) && !post_send(&pair[0], &wr));
	wc = next_wc(pair[0].cq);
	rule(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND, "a datagram completes");
	wc = next_wc(pair[1].cq);
	rule(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == 200 + GRH,
	     "a datagram arrives with a GRH area in front");
	rule(wc.wc_flags & IBV_WC_GRH, "the receive's completion has the GRH flag");
	rule(wc.src_qp == pair[0].qp->qp_num && wc.qp_num == pair[1].qp->qp_num,
	     "the receive's completion has the source QPN");
	rule(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htobe32(12),
	     "the receive's completion has the immediate data");
	rule(wc.pkey_index == 0, "the receive's completion has the P_Key index");
	rule(!memcmp(pair[1].room + GRH, pair[0].room, 200), "the payload follows the GRH area");
	if (mtu() + GRH <= SIDE_ROOM) {
		wr = datagram(mtu());
		MUST(!post_recv(&pair[1], 2, 0, SIDE_ROOM) && !post_send(&pair[0], &wr));
		MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
		rule(next_wc(pair[1].cq).byte_len == mtu() + GRH,
		     "a datagram of the port's MTU arrives");
	}
	wr = datagram(0);
	MUST(!post_recv(&pair[1], 3, 0, GRH) && !post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	rule(next_wc(pair[1].cq).byte_len == GRH, "an empty datagram arrives");
}

static void test_too_long_datagrams_fail(void)
{
	enum ibv_wc_status status;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	int rc;

	pair_open(pair, IBV_QPT_UD, 0);
	wr = datagram(mtu() + 1);
	MUST(mtu() + 1 + GRH <= SIDE_ROOM && !post_recv(&pair[1], 1, 0, SIDE_ROOM));
	rc = abs(post_send(&pair[0], &wr));
	status = rc ? IBV_WC_LOC_LEN_ERR : next_wc(pair[0].cq).status;
	/* The architecture permits success (C10-93.1.1), which Linux' rdma_rxe reports. */
	rule((!rc || rc == EINVAL) && (status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_SUCCESS),
	     "a datagram beyond the MTU is refused, has a length error, or completes");
	rule(!any_wc(pair[1].cq, &wc), "a datagram beyond the MTU does not arrive");
}

static void test_unacceptable_datagrams_are_dropped(void)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UD, 0);
	wr = datagram(8);
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS && !any_wc(pair[1].cq, &wc),
	     "a datagram without a receive is lost");
	MUST(!post_recv(&pair[1], 1, 0, 100));
	wr.wr.ud.remote_qkey ^= 1;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS && !any_wc(pair[1].cq, &wc),
	     "a datagram with another Q_Key is lost (IBA 10.2.4)");
	wr.wr.ud.remote_qkey = 0x80000000 | 5; /* the packet has the QP's own Q_Key: IBA 10.2.5 */
	MUST(!post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	rule(next_wc(pair[1].cq).status == IBV_WC_SUCCESS,
	     "with the highest bit set the sender's own Q_Key is used (IBA 10.2.5)");
	MUST(!post_recv(&pair[1], 2, 0, 100));
	wr.wr.ud.remote_qkey = QKEY;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS && next_wc(pair[1].cq).wr_id == 2,
	     "a datagram after the lost ones arrives");
}

static void test_change_of_qkey(void)
{
	struct ibv_qp_attr attr = {.qkey = 0x2222};
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UD, 0);
	MUST(!ibv_modify_qp(pair[1].qp, &attr, IBV_QP_QKEY));
	MUST(!post_recv(&pair[1], 1, 0, 100));
	wr = datagram(8);
	MUST(!post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	rule(!any_wc(pair[1].cq, &wc), "after a change of the Q_Key the old one is refused");
	wr.wr.ud.remote_qkey = 0x2222;
	MUST(!post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	rule(next_wc(pair[1].cq).wr_id == 1, "after a change of the Q_Key the new one is accepted");
}

/* Q_Keys with the highest bit are reserved for privileged programs (IBA 10.2.5). */
static void test_controlled_qkey_needs_privilege(void)
{
	struct ibv_qp_attr attr = {.qkey = 0x80000005};

	if (privilege_held(CAP_NET_RAW)) {
		pair_open(pair, IBV_QPT_UD, 0);
		rule_errno(0, ibv_modify_qp(pair[0].qp, &attr, IBV_QP_QKEY),
			   "a controlled Q_Key is accepted with CAP_NET_RAW");
		pair_close(pair);
		memset(pair, 0, sizeof(pair));
	}
	privilege_drop(CAP_NET_RAW);
	hca_open();
	pair_open(pair, IBV_QPT_UD, 0);
	rule_errno(EPERM, ibv_modify_qp(pair[0].qp, &attr, IBV_QP_QKEY),
		   "a controlled Q_Key is refused without CAP_NET_RAW");
	attr.qkey = 0x7fffffff;
	rule_errno(0, ibv_modify_qp(pair[0].qp, &attr, IBV_QP_QKEY),
		   "other Q_Keys are accepted without CAP_NET_RAW");
}

/* Answers a datagram with an address handle made from its GRH and completion. */
static void test_answer_by_received_address(void)
{
	struct ibv_send_wr wr, back;
	struct ibv_ah_attr attr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct ibv_ah *ah;

	pair_open(pair, IBV_QPT_UD, 0);
	wr = datagram(64);
	MUST(!post_recv(&pair[1], 1, 0, 1000) && !post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	wc = next_wc(pair[1].cq);
	MUST(wc.status == IBV_WC_SUCCESS);
	if (!rule_errno(0,
			abs(ibv_init_ah_from_wc(hca.context, PORT, &wc,
						(struct ibv_grh *)pair[1].room, &attr)),
			"a received datagram gives address attributes"))
		return;
	rule(attr.is_global && attr.port_num == PORT &&
		     !memcmp(&attr.grh.dgid, &hca.gid, sizeof(hca.gid)) &&
		     attr.grh.sgid_index == hca.gid_index,
	     "the address attributes lead from the receiver to the sender");
	ah = ibv_create_ah_from_wc(hca.pd, &wc, (struct ibv_grh *)pair[1].room, PORT);
	MUST(ah);
	sge = side_sge(&pair[1], 2000, 32);
	back = side_wr(&pair[1], IBV_WR_SEND, &sge, &pair[0]);
	back.wr.ud.ah = ah;
	back.wr.ud.remote_qpn = wc.src_qp;
	MUST(!post_recv(&pair[0], 2, 4000, 1000) && !post_send(&pair[1], &back));
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	rule(next_wc(pair[0].cq).wr_id == 2 &&
		     !memcmp(pair[0].room + 4000 + GRH, pair[1].room + 2000, 32),
	     "an answer by the address handle arrives");
	rule_errno(0, ibv_destroy_ah(ah), "the address handle can be destroyed");
}

static void test_rdma_and_atomics_are_refused(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		const char *what;
	} rows[] = {{IBV_WR_RDMA_WRITE, "WRITE"},
		    {IBV_WR_RDMA_READ, "READ"},
		    {IBV_WR_ATOMIC_FETCH_AND_ADD, "atomics"}};

	pair_open(pair, IBV_QPT_UD, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_send_wr wr = datagram(8);
		int rc;

		wr.opcode = rows[i].opcode;
		rc = abs(post_send(&pair[0], &wr));
		rule(rc == EINVAL || (!rc && next_wc(pair[0].cq).status == IBV_WC_LOC_QP_OP_ERR),
		     "UD has no %s", rows[i].what);
		pair_again(pair);
	}
}

static void test_unsignaled_requests_free_their_slots(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *q;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
	q = pair[0].qpx;
	MUST(!ibv_query_qp(pair[0].qp, &attr, IBV_QP_CAP, &init));
	for (int round = 0; round < 3; round++) {
		ibv_wr_start(q);
		q->wr_flags = 0;
		for (uint32_t i = 0; i < attr.cap.max_send_wr; i++) {
			ibv_wr_send(q);
			ibv_wr_set_ud_addr(q, pair[0].ah, pair[1].qp->qp_num, QKEY);
			ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)pair[0].room, 1);
		}
		rule_errno(0, ibv_wr_complete(q),
			   "a queue whose unsignaled datagrams are sent takes max_send_wr others");
		rule(!any_wc(pair[0].cq, &wc), "unsignaled datagrams do not complete");
	}
}

static void test_posting_by_ibv_wr(void)
{
	struct ibv_qp_ex *q;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	q = pair[0].qpx;
	MUST(q && !post_recv(&pair[1], 1, 0, 100) && !post_recv(&pair[1], 2, 0, 100));
	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	q->wr_id = 5;
	ibv_wr_send(q);
	ibv_wr_set_ud_addr(q, pair[0].ah, pair[1].qp->qp_num, QKEY);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)pair[0].room, 16);
	q->wr_id = 6;
	ibv_wr_send_imm(q, htobe32(3));
	ibv_wr_set_ud_addr(q, pair[0].ah, pair[1].qp->qp_num, QKEY);
	ibv_wr_set_inline_data(q, pair[0].room, 8);
	rule_errno(0, ibv_wr_complete(q), "two datagrams can be posted by ibv_wr_*");
	rule(next_wc(pair[0].cq).wr_id == 5 && next_wc(pair[0].cq).wr_id == 6,
	     "both datagrams complete");
	wc = next_wc(pair[1].cq);
	rule(wc.byte_len == 16 + GRH && !memcmp(pair[1].room + GRH, pair[0].room, 8),
	     "the first datagram arrives");
	wc = next_wc(pair[1].cq);
	rule(wc.byte_len == 8 + GRH && wc.imm_data == htobe32(3), "the second datagram arrives");
}

static void test_local_error_leads_to_sqe(void)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UD, 0);
	MUST(!post_recv(&pair[0], 9, 0, 100));
	wr = datagram(8);
	one_sge.lkey ^= 0x55555500;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_LOC_PROT_ERR,
	     "a request with a wrong local key fails");
	rule(side_state(&pair[0]) == IBV_QPS_SQE, "a local error leads to SQE (IBA 10.3.1.6)");
	wr = side_wr(&pair[1], IBV_WR_SEND, &one_sge, &pair[0]);
	one_sge = side_sge(&pair[1], 0, 8);
	MUST(!post_send(&pair[1], &wr));
	wc = next_wc(pair[0].cq);
	rule(wc.wr_id == 9 && wc.status == IBV_WC_SUCCESS,
	     "the receive queue still works after a local error");
}

const struct test qp_ud_tests[] = {
	{"datagrams", test_datagrams},
	{"too_long", test_too_long_datagrams_fail},
	{"lost", test_unacceptable_datagrams_are_dropped},
	{"qkey_change", test_change_of_qkey},
	{"controlled_qkey", test_controlled_qkey_needs_privilege},
	{"answering", test_answer_by_received_address},
	{"not_for_ud", test_rdma_and_atomics_are_refused},
	{"unsignaled", test_unsignaled_requests_free_their_slots},
	{"posting_api", test_posting_by_ibv_wr},
	{"local_error", test_local_error_leads_to_sqe},
	{NULL, NULL},
};
