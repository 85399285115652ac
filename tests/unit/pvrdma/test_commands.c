/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Every command of the PVRDMA device: answers, wrong order, and values out of range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "pvrdma_driver.h"

static int start_guest(void **state)
{
	static struct guest g;

	guest_open(&g, &(struct guest_attr){.id = 1});
	guest_start(&g);
	*state = &g;
	return 0;
}

static int close_guest(void **state)
{
	guest_close(*state);
	return 0;
}

static void test_unknown_commands_return_eopnotsupp(void **state)
{
	static const uint32_t commands[] = {PV_CMDS, 100, 0x80000000u, UINT32_MAX};
	struct guest *g = *state;

	for (unsigned i = 0; i < 4; i++) {
		union pv_request request = {0};
		union pv_response response;

		assert_int_equal(guest_command(g, commands[i], &request, &response), -EOPNOTSUPP);
	}
}

static void test_query_port_describes_port_1_only(void **state)
{
	struct guest *g = *state;
	union pv_request request = {.query_port = {.port_num = 1}};
	union pv_response response;
	const struct pv_port_attr *attrs = &response.query_port.attrs;

	assert_int_equal(guest_command(g, PV_CMD_QUERY_PORT, &request, &response), 0);
	assert_int_equal(attrs->state, 4);
	assert_int_equal(attrs->max_mtu, URXE_MTU_4096);
	assert_int_equal(attrs->active_mtu, URXE_MTU_1024);
	assert_int_equal(attrs->gid_tbl_len, URXE_MAX_GIDS);
	assert_int_equal(attrs->pkey_tbl_len, 1);
	assert_int_equal(attrs->phys_state, 5);
	for (uint8_t port = 0; port < 3; port += 2) {
		request.query_port.port_num = port;
		assert_int_equal(guest_command(g, PV_CMD_QUERY_PORT, &request, &response), -EINVAL);
	}
}

static void test_active_path_mtu_follows_the_device_mtu(void **state)
{
	static const struct {
		uint32_t mtu, active;
	} rows[] = {{576, URXE_MTU_256},
		    {1500, URXE_MTU_1024},
		    {4200, URXE_MTU_4096},
		    {9000, URXE_MTU_4096}};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct guest g;
		union pv_request request = {.query_port = {.port_num = 1}};
		union pv_response response;

		guest_open(&g, &(struct guest_attr){.id = 1, .mtu = rows[i].mtu});
		guest_start(&g);
		assert_int_equal(guest_command(&g, PV_CMD_QUERY_PORT, &request, &response), 0);
		assert_int_equal(response.query_port.attrs.active_mtu, rows[i].active);
		guest_close(&g);
	}
}

static void test_pkey_table_has_the_default_pkey_only(void **state)
{
	struct guest *g = *state;
	union pv_request request = {.query_pkey = {.port_num = 1}};
	union pv_response response;

	assert_int_equal(guest_command(g, PV_CMD_QUERY_PKEY, &request, &response), 0);
	assert_int_equal(response.query_pkey.pkey, 0xffff);
	request.query_pkey.index = 1;
	assert_int_equal(guest_command(g, PV_CMD_QUERY_PKEY, &request, &response), -EINVAL);
	request = (union pv_request){.query_pkey = {.port_num = 2}};
	assert_int_equal(guest_command(g, PV_CMD_QUERY_PKEY, &request, &response), -EINVAL);
}

/* Every destruction of what is not there. */
static void test_destroy_of_unknown_handles_returns_enoent(void **state)
{
	static const uint32_t commands[] = {PV_CMD_DESTROY_PD, PV_CMD_DESTROY_MR,
					    PV_CMD_DESTROY_CQ, PV_CMD_DESTROY_QP,
					    PV_CMD_DESTROY_UC, PV_CMD_DESTROY_SRQ};
	static const uint32_t handles[] = {5, 0x10000, 0xffffff, 0x80000000u, UINT32_MAX};
	struct guest *g = *state;

	for (unsigned i = 0; i < 6; i++)
		for (unsigned j = 0; j < 5; j++)
			assert_int_equal(guest_handle_command(g, commands[i], handles[j]), -ENOENT);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_COMMAND_ERRORS], 30);
}

static int create_uc(struct guest *g, uint64_t pfn, uint32_t *handle)
{
	union pv_request request = {.create_uc = {.pfn64 = pfn}};
	union pv_response response;
	int rc = guest_command(g, PV_CMD_CREATE_UC, &request, &response);

	*handle = response.handle.handle;
	return rc;
}

static void test_user_context_checks_its_page(void **state)
{
	struct guest *g = *state;
	struct cq cq;
	uint32_t uc, handle;

	assert_int_equal(create_uc(g, GUEST_UAR_PFN, &uc), -EINVAL);
	assert_int_equal(create_uc(g, GUEST_UAR_PFN - 1, &uc), -EINVAL);
	assert_int_equal(create_uc(g, GUEST_UAR_PFN + PVRDMA_UAR_PAGES, &uc), -EINVAL);
	assert_int_equal(create_uc(g, GUEST_UAR_PFN + PVRDMA_UAR_PAGES - 1, &uc), 0);
	assert_int_not_equal(uc, 0); /* 0 stands for the kernel */
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_UC, uc), 0);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_UC, uc), -ENOENT);
	assert_int_equal(cq_try_open(g, &cq, 4, uc), -ENOENT);
	for (unsigned page = 1; page < PVRDMA_UAR_PAGES; page++)
		assert_int_equal(create_uc(g, GUEST_UAR_PFN + page, &handle), 0);
}

/* --- Objects that the driver does not know: it has given up the command that created them */

static void open_region(struct guest *g, uint32_t pd)
{
	const struct pv_cmd_create_mr request = {.pd_handle = pd, .flags = PV_MR_FLAG_DMA};
	uint32_t handle, key;

	assert_int_equal(mr_create(g, &request, &handle, &key), 0);
}

static void test_abandoned_region_goes_with_its_pd(void **state)
{
	struct guest *g = *state;
	uint32_t uc, pd, at = 0;

	for (unsigned i = 0; i < PVRDMA_UAR_PAGES + 100; i++) {
		assert_int_equal(create_uc(g, GUEST_UAR_PFN + 1, &uc), 0);
		pd = guest_pd(g, uc);
		open_region(g, pd);
		assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_PD, pd), 0);
		assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_UC, uc), 0);
	}
	assert_null(pvrdma_next_mr(g->dev, &at));
}

static void test_abandoned_context_goes_with_the_next_one_of_its_page(void **state)
{
	struct guest *g = *state;
	struct cq cq;
	uint32_t uc, pd, other, at = 0;

	assert_int_equal(create_uc(g, GUEST_UAR_PFN + 2, &other), 0);
	for (unsigned i = 0; i < PVRDMA_UAR_PAGES + 100; i++) {
		assert_int_equal(create_uc(g, GUEST_UAR_PFN + 1, &uc), 0);
		pd = guest_pd(g, uc);
	}
	open_region(g, pd);
	assert_int_equal(cq_try_open(g, &cq, 4, uc), 0);
	assert_int_equal(create_uc(g, GUEST_UAR_PFN + 1, &uc), 0);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_PD, pd), -ENOENT);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_CQ, cq.handle), -ENOENT);
	assert_null(pvrdma_next_mr(g->dev, &at));
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_UC, other), 0);
	guest_pages_free(&cq.pages);
}

/* Opens a queue pair with an SRQ in a context of its own, and destroys what it uses. */
static void expect_qp_goes_with(struct guest *g, uint32_t destroy)
{
	struct cq cq[2];
	struct srq srq;
	struct qp qp;
	uint32_t handle = 0, at = 0, kernels = g->pd;

	guest_enter_context(g, 1);
	for (int i = 0; i < 2; i++)
		cq_open(g, &cq[i], 16);
	assert_int_equal(srq_try_open(g, &srq, 16, 4, 0), 0);
	qp_open(g, &qp,
		&(struct qp_attr){
			.type = PV_QPT_RC, .send_cq = &cq[0], .recv_cq = &cq[1], .srq = &srq});
	switch (destroy) {
	case PV_CMD_DESTROY_CQ: handle = cq[0].handle; break;
	case PV_CMD_DESTROY_SRQ: handle = srq.handle; break;
	case PV_CMD_DESTROY_PD: handle = g->pd; break;
	case PV_CMD_DESTROY_UC: handle = g->context; break;
	}
	assert_int_equal(guest_handle_command(g, destroy, handle), 0);
	assert_null(pvrdma_next_qp(g->dev, &at));
	assert_int_equal(guest_handle_command(g, destroy, handle), -ENOENT);
	guest_pages_free(&qp.pages);
	guest_pages_free(&srq.pages);
	for (int i = 0; i < 2; i++)
		guest_pages_free(&cq[i].pages);
	g->pd = kernels;
	g->context = g->uar_page = 0;
}

static void test_abandoned_qp_goes_with_what_it_uses(void **state)
{
	struct guest *g = *state;

	expect_qp_goes_with(g, PV_CMD_DESTROY_CQ);
	expect_qp_goes_with(g, PV_CMD_DESTROY_SRQ);
	expect_qp_goes_with(g, PV_CMD_DESTROY_PD);
	expect_qp_goes_with(g, PV_CMD_DESTROY_UC);
}

/* A program rings the doorbells of its own page only. */
static void test_doorbell_in_another_contexts_page_is_refused(void **state)
{
	struct guest *g = *state;
	const uint64_t *counters = pvrdma_counters(g->dev);
	struct cq cq;
	uint32_t uc;

	assert_int_equal(create_uc(g, GUEST_UAR_PFN + 7, &uc), 0);
	assert_int_equal(cq_try_open(g, &cq, 4, uc), 0);
	guest_doorbell(g, 7, PVRDMA_UAR_CQ_OFFSET, cq.handle | PV_UAR_CQ_ARM);
	assert_int_equal(counters[PVRDMA_DOORBELL_BAD], 0);
	guest_doorbell(g, 0, PVRDMA_UAR_CQ_OFFSET, cq.handle | PV_UAR_CQ_ARM);
	guest_doorbell(g, 8, PVRDMA_UAR_CQ_OFFSET, cq.handle | PV_UAR_CQ_ARM);
	guest_doorbell(g, 7, PVRDMA_UAR_CQ_OFFSET, (cq.handle + 1) | PV_UAR_CQ_ARM);
	guest_doorbell(g, 7, PVRDMA_UAR_QP_OFFSET, UINT32_MAX);
	guest_doorbell(g, 7, PVRDMA_UAR_SRQ_OFFSET, UINT32_MAX);
	assert_int_equal(counters[PVRDMA_DOORBELL_BAD], 5);
	assert_int_equal(counters[PVRDMA_DOORBELLS], 6);
	cq_close(g, &cq);
}

static void test_destroyed_pd_handle_is_not_reused_at_once(void **state)
{
	struct guest *g = *state;
	union pv_request request = {.handle = {.handle = 3}};
	union pv_response response;
	uint32_t first = guest_pd(g, 0), second = guest_pd(g, 0);

	assert_int_not_equal(first, second);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_PD, first), 0);
	/* A freed handle is not the next that is used. */
	assert_int_not_equal(guest_pd(g, 0), first);
	assert_int_equal(guest_command(g, PV_CMD_CREATE_PD, &request, &response), -ENOENT);
}

static void test_create_cq_with_bad_size_or_pages_fails(void **state)
{
	static const uint32_t bad[] = {0, 3, 100, 1u << 21, 1u << 31, UINT32_MAX};
	struct guest *g = *state;
	struct cq cq;
	union pv_request request = {0};
	union pv_response response;

	cq_open(g, &cq, 64);
	assert_true(cq.handle < guest_caps(g)->max_cq);
	request.create_cq =
		(struct pv_cmd_create_cq){.pdir_dma = cq.pages.dir, .nchunks = UINT32_MAX};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		request.create_cq.cqe = bad[i];
		assert_int_equal(guest_command(g, PV_CMD_CREATE_CQ, &request, &response), -EINVAL);
	}
	request.create_cq.cqe = 64;
	request.create_cq.nchunks = 1;
	assert_int_equal(guest_command(g, PV_CMD_CREATE_CQ, &request, &response), -EINVAL);
	/* The directory's second table is no page. */
	((uint64_t *)guest_at(g, cq.pages.dir))[1] = 8;
	request.create_cq.cqe = 1u << 20;
	request.create_cq.nchunks = 16385;
	assert_int_equal(guest_command(g, PV_CMD_CREATE_CQ, &request, &response), -EFAULT);
	assert_int_equal(guest_handle_command(g, PV_CMD_RESIZE_CQ, cq.handle), -EOPNOTSUPP);
	cq_close(g, &cq);
}

static struct pv_cmd_create_qp create_qp(const struct guest *g, const struct cq *cq,
					 const struct pages *pages)
{
	return (struct pv_cmd_create_qp){
		.pdir_dma = pages->dir,
		.pd_handle = g->pd,
		.send_cq_handle = cq->handle,
		.recv_cq_handle = cq->handle,
		.max_send_wr = 16,
		.max_recv_wr = 16,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.total_chunks = 3,
		.send_chunks = 1,
		.qp_type = PV_QPT_RC,
	};
}

/* The driver does not set the size of a receive queue that the QP does not have. */
static void test_queue_pair_with_srq_ignores_the_receive_size(void **state)
{
	struct guest *g = *state;
	struct cq cq;
	struct srq srq;
	struct pages pages;

	cq_open(g, &cq, 64);
	guest_pages(g, 3, &pages);
	assert_int_equal(srq_try_open(g, &srq, 16, 4, 0), 0);
	for (uint32_t sge = 1; sge; sge = sge < 0x0f000000 ? 0x0f000000 : 0) {
		union pv_request request = {.create_qp = create_qp(g, &cq, &pages)};
		union pv_response response;

		request.create_qp.is_srq = 1;
		request.create_qp.srq_handle = srq.handle;
		request.create_qp.max_recv_wr = 5;
		request.create_qp.max_recv_sge = sge;
		assert_int_equal(guest_command(g, PV_CMD_CREATE_QP, &request, &response), 0);
		assert_int_equal(
			guest_handle_command(g, PV_CMD_DESTROY_QP, response.create_qp.qp_handle),
			0);
	}
	srq_close(g, &srq);
	cq_close(g, &cq);
	guest_pages_free(&pages);
}

static void test_create_qp_with_bad_attributes_fails(void **state)
{
	struct guest *g = *state;
	enum {
		NO_PD,
		NO_SEND_CQ,
		NO_RECV_CQ,
		NO_SRQ,
		SMI,
		UC,
		RAW,
		NO_SENDS,
		ODD_SENDS,
		MANY_SENDS,
		NO_RECVS,
		ODD_RECVS,
		MANY_RECVS,
		SEND_SEGMENTS,
		RECV_SEGMENTS,
		FEW_CHUNKS,
		FEW_SEND_CHUNKS,
		NO_CHUNKS,
		BAD_DIR,
		MORE_THAN_DIR,
		ROWS
	};
	static const int expected[ROWS] = {
		[NO_PD] = ENOENT,      [NO_SEND_CQ] = ENOENT,      [NO_RECV_CQ] = ENOENT,
		[NO_SRQ] = ENOENT,     [SMI] = EOPNOTSUPP,         [UC] = EOPNOTSUPP,
		[RAW] = EOPNOTSUPP,    [NO_SENDS] = EINVAL,        [ODD_SENDS] = EINVAL,
		[MANY_SENDS] = EINVAL, [NO_RECVS] = EINVAL,        [ODD_RECVS] = EINVAL,
		[MANY_RECVS] = EINVAL, [SEND_SEGMENTS] = EINVAL,   [RECV_SEGMENTS] = EINVAL,
		[FEW_CHUNKS] = EINVAL, [FEW_SEND_CHUNKS] = EINVAL, [NO_CHUNKS] = EINVAL,
		[BAD_DIR] = EFAULT,    [MORE_THAN_DIR] = EFAULT,
	};
	struct cq cq;
	struct pages pages;

	cq_open(g, &cq, 64);
	guest_pages(g, 3, &pages);
	for (int row = 0; row < ROWS; row++) {
		union pv_request request = {.create_qp = create_qp(g, &cq, &pages)};
		struct pv_cmd_create_qp *c = &request.create_qp;
		union pv_response response;

		switch (row) {
		case NO_PD: c->pd_handle = 99; break;
		case NO_SEND_CQ: c->send_cq_handle = 99; break;
		case NO_RECV_CQ: c->recv_cq_handle = UINT32_MAX; break;
		case NO_SRQ: c->is_srq = 1; break;
		case SMI: c->qp_type = 0; break;
		case UC: c->qp_type = 3; break;
		case RAW: c->qp_type = 8; break;
		case NO_SENDS: c->max_send_wr = 0; break;
		case ODD_SENDS: c->max_send_wr = 15; break;
		case MANY_SENDS: c->max_send_wr = 65536; break;
		case NO_RECVS: c->max_recv_wr = 0; break;
		case ODD_RECVS: c->max_recv_wr = 3; break;
		case MANY_RECVS: c->max_recv_wr = 1u << 31; break;
		case SEND_SEGMENTS: c->max_send_sge = 33; break;
		case RECV_SEGMENTS: c->max_recv_sge = UINT32_MAX; break;
		case FEW_CHUNKS: c->total_chunks = 2; break;
		case FEW_SEND_CHUNKS: c->max_send_wr = 64; break;
		case NO_CHUNKS: c->total_chunks = c->send_chunks = 0; break;
		case BAD_DIR: c->pdir_dma++; break;
		case MORE_THAN_DIR: c->total_chunks = c->send_chunks = 0xfff0; break;
		default: break;
		}
		if (row == MORE_THAN_DIR)
			c->total_chunks = 0xffff;
		if (row == MORE_THAN_DIR)
			((uint64_t *)guest_at(g, pages.dir))[1] = 8;
		assert_int_equal(guest_command(g, PV_CMD_CREATE_QP, &request, &response),
				 -expected[row]);
	}
	cq_close(g, &cq); /* no failed creation uses it */
	guest_pages_free(&pages);
}

static void test_qp_connects(void **state)
{
	struct guest *g = *state;
	const struct qp_attr attr = {.type = PV_QPT_RC, .send_cq = &(struct cq){0}};
	struct pv_qp_attr attrs;
	struct qp_attr used = attr;
	struct cq cq;
	struct qp qp, second;
	uint32_t pd = g->pd;

	cq_open(g, &cq, 64);
	used.send_cq = used.recv_cq = &cq;
	qp_open(g, &qp, &used);
	qp_open(g, &second, &used);
	assert_int_not_equal(qp.handle, second.handle);
	assert_int_not_equal(qp.qpn, second.qpn);
	/* Providers without handles use the lower 16 bits of the number. */
	assert_int_equal(qp.qpn & 0xffff, qp.handle);
	qp_connect(g, &qp, g, &second);
	assert_int_equal(qp_query(g, &qp, &attrs), URXE_QPS_RTS);
	assert_int_equal(attrs.dest_qp_num, second.qpn);
	assert_int_equal(attrs.timeout, 14);
	assert_int_equal(attrs.path_mtu, URXE_MTU_1024);
	assert_int_equal(attrs.cap.max_send_wr, 16);
	assert_int_equal(attrs.cap.max_recv_sge, 2);
	assert_memory_equal(attrs.ah_attr.dmac, g->mac, 6);
	assert_int_equal(attrs.ah_attr.ah_flags, 1);
	qp_close(g, &qp);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_QP, qp.handle), -ENOENT);
	qp_close(g, &second);
	cq_close(g, &cq);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_PD, pd), 0);
}

/* Linux' driver copies members that its callers have not set. */
static void test_modify_qp_ignores_attributes_outside_the_mask(void **state)
{
	const uint32_t any = 0x6b6b6b6b;
	const struct pv_qp_attr attrs = {.qp_state = URXE_QPS_INIT,
					 .cur_qp_state = any,
					 .path_mtu = any,
					 .path_mig_state = any,
					 .port_num = 1};
	struct guest *g = *state;
	struct cq cq;
	struct qp qp;

	cq_open(g, &cq, 16);
	qp_open(g, &qp, &(struct qp_attr){.type = PV_QPT_RC, .send_cq = &cq, .recv_cq = &cq});
	assert_int_equal(
		qp_modify(g, &qp, &attrs,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS),
		0);
	qp_close(g, &qp);
	cq_close(g, &cq);
}

/* Linux' driver passes them on as programs give them. IBV_ACCESS_HUGETLB and _RELAXED_ORDERING are
 * no rights of a QP, a PSN has 24 bits, and a retry count is at most 7. */
static void test_modify_qp_cuts_flags_psns_and_retry_counts(void **state)
{
	const uint32_t no_rights = 1u << 7 | 1u << 20;
	struct pv_qp_attr attrs;
	struct guest *g = *state;
	struct cq cq;
	struct qp qp;

	cq_open(g, &cq, 16);
	qp_open(g, &qp, &(struct qp_attr){.type = PV_QPT_RC, .send_cq = &cq, .recv_cq = &cq});
	qp_receive(g, &qp, g, &qp);
	qp_query(g, &qp, &attrs);
	attrs.qp_access_flags = URXE_ACCESS_REMOTE_WRITE | no_rights;
	attrs.rq_psn = 0x9000064;
	attrs.sq_psn = 0x7000065;
	attrs.timeout = 14;
	attrs.retry_cnt = 255;
	assert_int_equal(qp_to(g, &qp, URXE_QPS_RESET), 0);
	attrs.qp_state = URXE_QPS_INIT;
	assert_int_equal(
		qp_modify(g, &qp, &attrs,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS),
		0);
	attrs.qp_state = URXE_QPS_RTR;
	assert_int_equal(qp_modify(g, &qp, &attrs,
				   URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU |
					   URXE_QP_DEST_QPN | URXE_QP_RQ_PSN |
					   URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER),
			 0);
	attrs.qp_state = URXE_QPS_RTS;
	assert_int_equal(qp_modify(g, &qp, &attrs,
				   URXE_QP_STATE | URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT |
					   URXE_QP_RNR_RETRY | URXE_QP_SQ_PSN |
					   URXE_QP_MAX_QP_RD_ATOMIC | URXE_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(qp_query(g, &qp, &attrs), URXE_QPS_RTS);
	assert_int_equal(attrs.rq_psn, 0x64);
	assert_int_equal(attrs.sq_psn, 0x65);
	assert_int_equal(attrs.qp_access_flags, URXE_ACCESS_REMOTE_WRITE);
	assert_int_equal(attrs.retry_cnt, 7);
	qp_close(g, &qp);
	cq_close(g, &cq);
}

/* A failed change of a QP is an error in the response, which the driver looks at. */
static void test_modify_qp_with_bad_attributes_fails(void **state)
{
	struct guest *g = *state;
	enum {
		NO_QP,
		STATE,
		CUR_STATE,
		MIG_STATE,
		TRANSITION,
		MISSING,
		GID_INDEX,
		NO_GRH,
		ALT_PATH,
		MTU,
		ROWS
	};
	struct cq cq;
	struct qp qp;

	cq_open(g, &cq, 16);
	qp_open(g, &qp, &(struct qp_attr){.type = PV_QPT_RC, .send_cq = &cq, .recv_cq = &cq});
	for (int row = 0; row < ROWS; row++) {
		struct pv_qp_attr attrs = {.qp_state = URXE_QPS_INIT, .port_num = 1};
		uint32_t mask =
			URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS;
		struct qp target = qp;

		switch (row) {
		case NO_QP: target.handle = 77; break;
		case STATE: attrs.qp_state = 7; break;
		case CUR_STATE:
			attrs.cur_qp_state = 0x100;
			mask |= URXE_QP_CUR_STATE;
			break;
		case MIG_STATE:
			attrs.path_mig_state = 0x100;
			mask |= URXE_QP_PATH_MIG_STATE;
			break;
		case TRANSITION: attrs.qp_state = URXE_QPS_RTS; break;
		case MISSING: mask &= ~(uint32_t)URXE_QP_PORT; break;
		case GID_INDEX:
			attrs.ah_attr = (struct pv_ah_attr){.ah_flags = 1, .sgid_index = 200};
			mask |= URXE_QP_AV;
			break;
		case NO_GRH: mask |= URXE_QP_AV; break;
		case ALT_PATH: mask |= URXE_QP_ALT_PATH; break;
		case MTU:
			attrs.path_mtu = 0x101;
			mask |= URXE_QP_PATH_MTU;
			break;
		default: break;
		}
		assert_int_not_equal(qp_modify(g, &target, &attrs, mask), 0);
		assert_int_equal(guest_read(g, PV_REG_ERR), 0);
		assert_int_equal(qp_query(g, &qp, NULL), URXE_QPS_RESET);
	}
	qp_close(g, &qp);
	cq_close(g, &cq);
}

static void test_query_of_unknown_qp_returns_enoent(void **state)
{
	union pv_request request = {.query_qp = {.qp_handle = 3}};
	union pv_response response;

	assert_int_equal(guest_command(*state, PV_CMD_QUERY_QP, &request, &response), -ENOENT);
}

/* There is one QP 1. */
static void test_second_gsi_qp_is_refused(void **state)
{
	struct guest *g = *state;
	struct cq cq;
	struct qp qp, second;
	struct qp_attr attr = {.type = PV_QPT_GSI, .send_cq = &cq, .recv_cq = &cq};

	cq_open(g, &cq, 16);
	qp_open(g, &qp, &attr);
	assert_int_equal(qp.qpn, 1);
	assert_int_equal(qp_try_open(g, &second, &attr), -EEXIST);
	qp_close(g, &qp);
	qp_open(g, &second, &attr);
	qp_close(g, &second);
	cq_close(g, &cq);
}

/* Handles and numbers over more creations than there are generations. */
static void test_qpns_stay_valid_over_600_creations(void **state)
{
	struct guest *g = *state;
	struct cq cq;
	uint32_t last = 0;

	cq_open(g, &cq, 16);
	for (unsigned i = 0; i < 600; i++) {
		struct qp qp;
		uint64_t low = g->next_low, high = g->next_high;

		qp_open(g, &qp,
			&(struct qp_attr){.type = PV_QPT_UD, .send_cq = &cq, .recv_cq = &cq});
		assert_int_not_equal(qp.qpn, last);
		assert_true(qp.qpn > 1 && qp.qpn < 0xffffff);
		last = qp.qpn;
		qp_close(g, &qp);
		g->next_low = low;
		g->next_high = high;
	}
	cq_close(g, &cq);
}

static int modify_srq(struct guest *g, uint32_t handle, uint32_t mask, uint32_t limit)
{
	union pv_request request = {.modify_srq = {.srq_handle = handle,
						   .attr_mask = mask,
						   .attrs = {.srq_limit = limit}}};
	union pv_response response;

	return guest_command(g, PV_CMD_MODIFY_SRQ, &request, &response);
}

static void test_srq_attributes_and_limits_are_checked(void **state)
{
	struct guest *g = *state;
	union pv_request request;
	union pv_response response;
	struct srq srq;

	assert_int_equal(srq_try_open(g, &srq, 3, 1, 0), -EINVAL);
	assert_int_equal(srq_try_open(g, &srq, 0, 1, 0), -EINVAL);
	assert_int_equal(srq_try_open(g, &srq, 16, 33, 0), -EINVAL);
	assert_int_equal(srq_try_open(g, &srq, 16, 4, 17), 0);
	request = (union pv_request){.handle = {.handle = srq.handle}};
	assert_int_equal(guest_command(g, PV_CMD_QUERY_SRQ, &request, &response), 0);
	assert_int_equal(response.query_srq.attrs.srq_limit, 16);
	srq_close(g, &srq);
	assert_int_equal(srq_try_open(g, &srq, 16, 4, 3), 0);
	request = (union pv_request){.handle = {.handle = srq.handle}};
	assert_int_equal(guest_command(g, PV_CMD_QUERY_SRQ, &request, &response), 0);
	assert_int_equal(response.query_srq.attrs.max_wr, 16);
	assert_int_equal(response.query_srq.attrs.max_sge, 4);
	assert_int_equal(response.query_srq.attrs.srq_limit, 3);
	assert_int_equal(modify_srq(g, srq.handle, PV_SRQ_LIMIT, 9), 0);
	assert_int_equal(modify_srq(g, srq.handle, PV_SRQ_LIMIT, 17), -EINVAL);
	assert_int_equal(modify_srq(g, srq.handle, PV_SRQ_MAX_WR, 0), -EINVAL);
	assert_int_equal(modify_srq(g, srq.handle + 1, PV_SRQ_LIMIT, 1), -ENOENT);
	srq_close(g, &srq);
	request.handle.handle = srq.handle;
	assert_int_equal(guest_command(g, PV_CMD_QUERY_SRQ, &request, &response), -ENOENT);
}

static void test_create_srq_checks_type_pages_and_pd(void **state)
{
	struct guest *g = *state;
	struct pages pages;
	union pv_request request = {0};
	union pv_response response;

	guest_pages(g, 2, &pages);
	request.create_srq = (struct pv_cmd_create_srq){.pd_handle = g->pd,
							.pdir_dma = pages.dir,
							.nchunks = 2,
							.attrs = {.max_wr = 16, .max_sge = 1},
							.srq_type = 1};
	assert_int_equal(guest_command(g, PV_CMD_CREATE_SRQ, &request, &response), -EOPNOTSUPP);
	request.create_srq.srq_type = 0;
	request.create_srq.nchunks = 1;
	assert_int_equal(guest_command(g, PV_CMD_CREATE_SRQ, &request, &response), -EINVAL);
	request.create_srq.nchunks = 2;
	request.create_srq.pd_handle = 9;
	assert_int_equal(guest_command(g, PV_CMD_CREATE_SRQ, &request, &response), -ENOENT);
	guest_pages_free(&pages);
}

static void test_bind_checks_gid_index_vlan_and_type(void **state)
{
	struct guest *g = *state;
	union pv_request request = {.destroy_bind = {.index = 0}};
	union pv_response response;
	struct urxe_gid gid;

	guest_gid(g, &gid);
	assert_int_equal(guest_bind(g, URXE_MAX_GIDS, &gid, PV_NO_VLAN), -EINVAL);
	assert_int_equal(guest_bind(g, UINT32_MAX, &gid, PV_NO_VLAN), -EINVAL);
	assert_int_equal(guest_bind(g, 1, &gid, 0x1000), -EINVAL);
	assert_int_equal(guest_bind(g, 1, &gid, UINT32_MAX), -EINVAL);
	assert_int_equal(guest_bind(g, URXE_MAX_GIDS - 1, &gid, 4094), 0);
	g->roce_v1 = true; /* a GID of the other type */
	assert_int_equal(guest_bind(g, 1, &gid, PV_NO_VLAN), -EINVAL);
	assert_int_equal(guest_command(g, PV_CMD_DESTROY_BIND, &request, &response), 0);
	assert_int_equal(guest_command(g, PV_CMD_DESTROY_BIND, &request, &response), -EINVAL);
	request.destroy_bind.index = 255;
	assert_int_equal(guest_command(g, PV_CMD_DESTROY_BIND, &request, &response), -EINVAL);
}

/* The request slot ends with the memory, and the response slot lies outside of it. */
static void test_command_slot_outside_memory_sets_efault(void **state)
{
	struct guest *g = *state;
	struct pv_shared_region *region;

	for (int row = 0; row < 3; row++) {
		guest_prepare(g);
		region = guest_at(g, g->dsr);
		switch (row) {
		case 0: region->cmd_slot_dma = GUEST_LOW_SIZE - sizeof(union pv_request) + 1; break;
		case 1: region->resp_slot_dma = UINT64_MAX - 3; break;
		default: region->cmd_slot_dma = GUEST_EXTRA; break;
		}
		guest_load(g);
		guest_activate(g);
		assert_int_equal(guest_read(g, PV_REG_ERR), 0);
		guest_write(g, PV_REG_REQUEST, 0);
		assert_int_equal(guest_read(g, PV_REG_ERR), EFAULT);
	}
}

/* The largest queue pairs, whose pages are all the same one, until the device has given the guest
 * as much memory as it may take; destroying one makes room for another. */
static void test_memory_is_limited(void **state)
{
	struct guest *g = *state;
	union pv_request request;
	union pv_response response;
	struct pages pages;
	struct cq cq;
	uint64_t *dir;
	unsigned n = 0;

	cq_open(g, &cq, 16);
	guest_pages(g, 512, &pages);
	dir = guest_at(g, pages.dir);
	for (unsigned i = 1; i < 512; i++)
		dir[i] = dir[0];
	request.create_qp = create_qp(g, &cq, &pages);
	request.create_qp.max_send_wr = request.create_qp.max_recv_wr = 32768;
	request.create_qp.max_send_sge = request.create_qp.max_recv_sge = 32;
	request.create_qp.total_chunks = 20000;
	request.create_qp.send_chunks = 10000;
	while (!guest_command(g, PV_CMD_CREATE_QP, &request, &response))
		assert_true(++n < 1000);
	assert_int_equal(guest_read(g, PV_REG_ERR), ENOMEM);
	assert_true(n > 50);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_QP, 3), 0);
	assert_int_equal(guest_command(g, PV_CMD_CREATE_QP, &request, &response), 0);
	guest_pages_free(&cq.pages);
	guest_pages_free(&pages);
}

#define GUEST_TEST(test) cmocka_unit_test_setup_teardown(test, start_guest, close_guest)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GUEST_TEST(test_unknown_commands_return_eopnotsupp),
		GUEST_TEST(test_query_port_describes_port_1_only),
		GUEST_TEST(test_active_path_mtu_follows_the_device_mtu),
		GUEST_TEST(test_pkey_table_has_the_default_pkey_only),
		GUEST_TEST(test_destroy_of_unknown_handles_returns_enoent),
		GUEST_TEST(test_user_context_checks_its_page),
		GUEST_TEST(test_abandoned_region_goes_with_its_pd),
		GUEST_TEST(test_abandoned_context_goes_with_the_next_one_of_its_page),
		GUEST_TEST(test_abandoned_qp_goes_with_what_it_uses),
		GUEST_TEST(test_doorbell_in_another_contexts_page_is_refused),
		GUEST_TEST(test_destroyed_pd_handle_is_not_reused_at_once),
		GUEST_TEST(test_create_cq_with_bad_size_or_pages_fails),
		GUEST_TEST(test_queue_pair_with_srq_ignores_the_receive_size),
		GUEST_TEST(test_create_qp_with_bad_attributes_fails),
		GUEST_TEST(test_qp_connects),
		GUEST_TEST(test_modify_qp_ignores_attributes_outside_the_mask),
		GUEST_TEST(test_modify_qp_cuts_flags_psns_and_retry_counts),
		GUEST_TEST(test_modify_qp_with_bad_attributes_fails),
		GUEST_TEST(test_query_of_unknown_qp_returns_enoent),
		GUEST_TEST(test_second_gsi_qp_is_refused),
		GUEST_TEST(test_qpns_stay_valid_over_600_creations),
		GUEST_TEST(test_srq_attributes_and_limits_are_checked),
		GUEST_TEST(test_create_srq_checks_type_pages_and_pd),
		GUEST_TEST(test_bind_checks_gid_index_vlan_and_type),
		GUEST_TEST(test_command_slot_outside_memory_sets_efault),
		GUEST_TEST(test_memory_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
