/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unreliable connections (IBA 9.8.2). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static struct side pair[2];

static void test_sends_and_writes(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UC, 0);
	sge = side_sge(&pair[0], 0, 5000);
	wr = side_wr(&pair[0], IBV_WR_SEND_WITH_IMM, &sge, &pair[1]);
	wr.imm_data = htobe32(8);
	MUST(!post_recv(&pair[1], 1, 0, 6000) && !post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS, "a send completes");
	wc = next_wc(pair[1].cq);
	rule(wc.status == IBV_WC_SUCCESS && wc.byte_len == 5000 && wc.imm_data == htobe32(8) &&
		     !memcmp(pair[0].room, pair[1].room, 5000),
	     "a send of several packets arrives");
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE_WITH_IMM, &sge, &pair[1]);
	wr.wr.rdma.remote_addr += 1000;
	MUST(!post_recv(&pair[1], 2, 0, 0) && !post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	wc = next_wc(pair[1].cq);
	rule(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 5000 &&
		     !memcmp(pair[0].room, pair[1].room + 1000, 5000),
	     "a WRITE with immediate data arrives");
}

/* A message without a receive is lost, and the connection continues. */
static void test_lost_messages_keep_the_connection(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UC, 0);
	sge = side_sge(&pair[0], 0, 100);
	wr = side_wr(&pair[0], IBV_WR_SEND, &sge, &pair[1]);
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS, "a message without a receive is sent");
	rule(!any_wc(pair[1].cq, &wc), "a message without a receive does not arrive");
	MUST(!post_recv(&pair[1], 1, 0, 100) && !post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	rule(next_wc(pair[1].cq).wr_id == 1, "the message after a lost one arrives");
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	wr.wr.rdma.rkey ^= 0x55555500;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS,
	     "a WRITE with a wrong key completes, because UC has no answers");
	rule(side_state(&pair[0]) == IBV_QPS_RTS,
	     "the sender's QP stays in RTS after lost messages");
}

static void test_reads_and_atomics_are_refused(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		const char *what;
	} rows[] = {{IBV_WR_RDMA_READ, "READ"},
		    {IBV_WR_ATOMIC_FETCH_AND_ADD, "fetch-and-add"},
		    {IBV_WR_ATOMIC_CMP_AND_SWP, "compare-and-swap"}};

	pair_open(pair, IBV_QPT_UC, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_sge sge = side_sge(&pair[0], 0, 8);
		struct ibv_send_wr wr = side_wr(&pair[0], rows[i].opcode, &sge, &pair[1]);
		int rc = abs(post_send(&pair[0], &wr));

		rule(rc == EINVAL || (!rc && next_wc(pair[0].cq).status == IBV_WC_LOC_QP_OP_ERR),
		     "UC has no %s", rows[i].what);
		pair_again(pair);
	}
}

static void test_local_error_leads_to_sqe(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_UC, 0);
	sge = side_sge(&pair[0], 0, 8);
	sge.lkey ^= 0x55555500;
	wr = side_wr(&pair[0], IBV_WR_SEND, &sge, &pair[1]);
	wr.wr_id = 1;
	MUST(!post_send(&pair[0], &wr));
	wc = next_wc(pair[0].cq);
	rule(wc.status == IBV_WC_LOC_PROT_ERR && wc.wr_id == 1,
	     "a request with a wrong local key fails");
	rule(side_state(&pair[0]) == IBV_QPS_SQE, "a local error leads to SQE (IBA 10.3.1.6)");
	wr.wr_id = 2;
	MUST(!post_send(&pair[0], &wr));
	wc = next_wc(pair[0].cq);
	rule(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 2, "sends in SQE are flushed");
}

const struct test qp_uc_tests[] = {
	{"messages", test_sends_and_writes},
	{"losses", test_lost_messages_keep_the_connection},
	{"not_for_uc", test_reads_and_atomics_are_refused},
	{"local_error", test_local_error_leads_to_sqe},
	{NULL, NULL},
};
