/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions of the PVRDMA device: page directories, DMA regions with holes, fast registration,
 * and memory that is removed.
 */
#include "pair.h"

#include <errno.h>

static struct pv_cmd_create_mr create_of(const struct pair *p, const struct pages *pages,
					 uint64_t length)
{
	return (struct pv_cmd_create_mr){
		.start = VA & ~UINT64_C(0xfff),
		.length = length,
		.pdir_dma = pages->dir,
		.pd_handle = p->guest[1].pd,
		.access_flags = ALL_ACCESS,
		.nchunks = pages->n,
	};
}

/* Each row is a registration that fails, and leaves nothing behind. */
static void test_registration_with_bad_attributes_fails(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	enum {
		NO_LENGTH,
		TOO_LONG,
		FEW_PAGES,
		NO_PAGES,
		MANY_PAGES,
		NO_PD,
		ODD_PAGE,
		PAGE_IN_HOLE,
		TABLE_IN_HOLE,
		ODD_TABLE,
		DIR_IN_HOLE,
		ODD_DIR,
		WRITES_REMOTELY_ONLY,
		FLAGS,
		WRAPS,
		LAST_PAGE,
		ROWS
	};
	static const int expected[ROWS] = {
		[NO_LENGTH] = EINVAL, [TOO_LONG] = EINVAL,     [FEW_PAGES] = EINVAL,
		[NO_PAGES] = EINVAL,  [MANY_PAGES] = EINVAL,   [NO_PD] = ENOENT,
		[ODD_PAGE] = EFAULT,  [PAGE_IN_HOLE] = EFAULT, [TABLE_IN_HOLE] = EFAULT,
		[ODD_TABLE] = EFAULT, [DIR_IN_HOLE] = EFAULT,  [ODD_DIR] = EFAULT,
		[FLAGS] = EINVAL,     [WRAPS] = EINVAL,        [WRITES_REMOTELY_ONLY] = EINVAL,
		[LAST_PAGE] = EFAULT,
	};

	for (int row = 0; row < ROWS; row++) {
		struct pv_cmd_create_mr create;
		struct pages pages;
		uint32_t handle, key;

		guest_pages(g, 3, &pages);
		create = create_of(p, &pages, 3 * PV_PAGE);
		switch (row) {
		case NO_LENGTH: create.length = 0; break;
		case TOO_LONG: create.length = (1 << 30) + 1; break;
		case FEW_PAGES: create.length++; break;
		case NO_PAGES: create.nchunks = 0; break;
		case MANY_PAGES: create.nchunks = UINT32_MAX; break;
		case NO_PD: create.pd_handle = 77; break;
		case ODD_PAGE: table_of(g, &pages)[1] += 8; break;
		case PAGE_IN_HOLE: table_of(g, &pages)[0] = GUEST_LOW_SIZE; break;
		case TABLE_IN_HOLE: *(uint64_t *)guest_at(g, pages.dir) = UINT64_MAX << 12; break;
		case ODD_TABLE: *(uint64_t *)guest_at(g, pages.dir) |= 1; break;
		case DIR_IN_HOLE: create.pdir_dma = GUEST_EXTRA; break;
		case ODD_DIR: create.pdir_dma += 2; break;
		case WRITES_REMOTELY_ONLY: create.access_flags = 2; break;
		case FLAGS: create.flags = 3; break;
		case WRAPS: create.start = UINT64_MAX - PV_PAGE + 1; break;
		case LAST_PAGE: table_of(g, &pages)[2] = UINT64_MAX - PV_PAGE + 1; break;
		default: break;
		}
		assert_int_equal(mr_create(g, &create, &handle, &key), -expected[row]);
		guest_pages_free(&pages);
	}
}

/* Hints of later kernels (relaxed ordering, for example) are no rights. */
static void test_unknown_access_flags_are_ignored(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	struct pages pages;
	struct pv_cmd_create_mr create;
	uint32_t handle, key;

	guest_pages(g, 1, &pages);
	create = create_of(p, &pages, PV_PAGE);
	create.access_flags = 1u | 1u << 20 | 1u << 7;
	assert_int_equal(mr_create(g, &create, &handle, &key), 0);
	assert_int_equal(write_status(p, create.start, 8, key), PVRDMA_WC_REM_ACCESS_ERR);
	guest_pages_free(&pages);
}

static void test_write_past_the_end_of_a_region_is_refused(void **state)
{
	struct pair *p = *state;
	const uint64_t va = p->buffer[1].va;

	assert_int_equal(write_status(p, va + BUFFER - 8, 8, p->buffer[1].key), 0);
	assert_int_equal(write_status(p, va + BUFFER - 8, 9, p->buffer[1].key),
			 PVRDMA_WC_REM_ACCESS_ERR);
}

static void test_rkey_of_a_destroyed_mr_is_refused(void **state)
{
	struct pair *p = *state;

	assert_int_equal(guest_handle_command(&p->guest[1], PV_CMD_DESTROY_MR, p->buffer[1].handle),
			 0);
	assert_int_equal(guest_handle_command(&p->guest[1], PV_CMD_DESTROY_MR, p->buffer[1].handle),
			 -ENOENT);
	assert_int_equal(write_status(p, p->buffer[1].va, 8, p->buffer[1].key),
			 PVRDMA_WC_REM_ACCESS_ERR);
}

/* Largest region, of pages that are neighbours: their directory is built by hand. */
static void test_region_of_1_gib_is_registered(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	struct pv_cmd_create_mr create;
	struct pages pages = {.n = 512 * 512, .dir = guest_page(g)};
	uint32_t handle, key;
	uint64_t *dir = guest_at(g, pages.dir);

	for (unsigned t = 0; t < 512; t++) {
		uint64_t *table;

		dir[t] = guest_page(g);
		table = guest_at(g, dir[t]);
		for (unsigned i = 0; i < 512; i++)
			table[i] = GUEST_HIGH + (i << 12);
	}
	create = create_of(p, &pages, 1 << 30);
	assert_int_equal(mr_create(g, &create, &handle, &key), 0);
	assert_int_equal(write_status(p, create.start + (1 << 30) - 8, 8, key), 0);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_MR, handle), 0);
}

static uint32_t dma_region(struct guest *g, uint32_t access, uint32_t *handle)
{
	const struct pv_cmd_create_mr create = {
		.pd_handle = g->pd, .access_flags = access, .flags = PV_MR_FLAG_DMA};
	uint32_t key;

	assert_int_equal(mr_create(g, &create, handle, &key), 0);
	return key;
}

/* All memory by its physical addresses, for peers, too; holes are no memory. */
static void test_dma_region_covers_all_memory_but_holes(void **state)
{
	struct pair *p = *state;
	uint32_t handle, key = dma_region(&p->guest[1], ALL_ACCESS, &handle);
	const uint64_t low = GUEST_LOW_SIZE - PV_PAGE, high = GUEST_HIGH + GUEST_HIGH_SIZE - 100;

	buffer_fill(&p->guest[0], &p->buffer[0], 0, 100, 6);
	assert_int_equal(write_status(p, low, 100, key), 0);
	assert_int_equal(write_status(p, high, 100, key), 0);
	assert_memory_equal(guest_at(&p->guest[1], low), guest_at(&p->guest[1], high), 100);
	assert_int_equal(*(uint8_t *)guest_at(&p->guest[1], high), 6);
	assert_int_equal(write_status(p, GUEST_LOW_SIZE - 4, 8, key), PVRDMA_WC_REM_ACCESS_ERR);
	reconnect(p);
	assert_int_equal(write_status(p, high + 96, 8, key), PVRDMA_WC_REM_ACCESS_ERR);
}

/* A region without the right of local writes does not write. */
static void test_dma_region_without_write_right_refuses_writes(void **state)
{
	struct pair *p = *state;
	uint32_t handle, key = dma_region(&p->guest[1], 0, &handle);

	assert_int_equal(write_status(p, PV_PAGE, 8, key), PVRDMA_WC_REM_ACCESS_ERR);
}

static void test_dma_region_follows_memory(void **state)
{
	struct pair *p = *state;
	uint32_t handle, key = dma_region(&p->guest[1], ALL_ACCESS, &handle);

	assert_int_equal(write_status(p, GUEST_EXTRA, 8, key), PVRDMA_WC_REM_ACCESS_ERR);
	reconnect(p);
	guest_plug(&p->guest[1]);
	assert_int_equal(write_status(p, GUEST_EXTRA + GUEST_EXTRA_SIZE - 8, 8, key), 0);
	guest_unplug(&p->guest[1], GUEST_EXTRA, GUEST_EXTRA_SIZE / 2);
	assert_int_equal(write_status(p, GUEST_EXTRA + GUEST_EXTRA_SIZE / 2, 8, key), 0);
	assert_int_equal(write_status(p, GUEST_EXTRA + GUEST_EXTRA_SIZE / 2 - 4, 8, key),
			 PVRDMA_WC_REM_ACCESS_ERR);
	reconnect(p);
	guest_unplug(&p->guest[1], GUEST_EXTRA + GUEST_EXTRA_SIZE / 2, GUEST_EXTRA_SIZE / 2);
	guest_plug(&p->guest[1]);
	assert_int_equal(write_status(p, GUEST_EXTRA, 8, key), 0);
}

/* --- Fast registration, as the kernel's clients use it */

struct fast {
	struct pages pages;
	uint32_t handle;
	uint32_t key;
};

static void fast_open(struct guest *g, struct fast *fast, uint32_t n)
{
	const struct pv_cmd_create_mr create = {
		.pd_handle = g->pd, .flags = PV_MR_FLAG_FRMR, .nchunks = n};

	guest_pages(g, n, &fast->pages);
	assert_int_equal(mr_create(g, &create, &fast->handle, &fast->key), 0);
}

static struct pvrdma_sq_wqe_hdr reg_header(const struct fast *fast, uint64_t iova, uint32_t length)
{
	return (struct pvrdma_sq_wqe_hdr){
		.wr_id = 11,
		.opcode = PVRDMA_WR_FAST_REG_MR,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.fast_reg = {.iova_start = iova,
				.pl_pdir_dma = fast->pages.dir,
				.page_shift = 12,
				.page_list_len = fast->pages.n,
				.length = length,
				.access_flags = ALL_ACCESS,
				.rkey = fast->key},
	};
}

static uint32_t post_local(struct pair *p, const struct pvrdma_sq_wqe_hdr *header, uint32_t opcode)
{
	struct pvrdma_cqe cqe;

	qp_post_send(&p->guest[1], &p->qp[1], header, NULL);
	net_run(&p->net);
	assert_true(cq_poll(&p->guest[1], &p->cq[1], &cqe));
	assert_int_equal(cqe.wr_id, header->wr_id);
	if (cqe.status == PVRDMA_WC_SUCCESS)
		assert_int_equal(cqe.opcode, opcode);
	return cqe.status;
}

static void test_fast_registration_grants_until_local_invalidate(void **state)
{
	const uint64_t iova = 0x55500123;
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	struct pvrdma_sq_wqe_hdr header;
	struct fast fast;

	fast_open(g, &fast, 3);
	assert_int_equal(write_status(p, iova, 8, fast.key), PVRDMA_WC_REM_ACCESS_ERR);
	reconnect(p);
	header = reg_header(&fast, iova, 9000);
	assert_int_equal(post_local(p, &header, PVRDMA_WC_FAST_REG_MR), PVRDMA_WC_SUCCESS);
	buffer_fill(&p->guest[0], &p->buffer[0], 0, 9000, 2);
	assert_int_equal(write_status(p, iova, 9000, fast.key), 0);
	assert_int_equal(*(uint8_t *)guest_at(g, fast.pages.addr[0] + 0x123), 2);
	assert_memory_equal(guest_at(g, fast.pages.addr[1]),
			    buffer_at(&p->guest[0], &p->buffer[0], PV_PAGE - 0x123), 100);
	header = (struct pvrdma_sq_wqe_hdr){.wr_id = 12,
					    .opcode = PVRDMA_WR_LOCAL_INV,
					    .send_flags = URXE_SEND_SIGNALED,
					    .ex.invalidate_rkey = fast.key};
	assert_int_equal(post_local(p, &header, PVRDMA_WC_LOCAL_INV), PVRDMA_WC_SUCCESS);
	assert_int_equal(write_status(p, iova, 8, fast.key), PVRDMA_WC_REM_ACCESS_ERR);
	reconnect(p);
	/* The next registration has another key (ib_update_fast_reg_key). */
	fast.key = (fast.key & ~0xffu) | ((fast.key + 1) & 0xff);
	header = reg_header(&fast, iova, 9000);
	assert_int_equal(post_local(p, &header, PVRDMA_WC_FAST_REG_MR), PVRDMA_WC_SUCCESS);
	assert_int_equal(write_status(p, iova, 8, fast.key), 0);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_MR, fast.handle), 0);
	assert_int_equal(write_status(p, iova, 8, fast.key), PVRDMA_WC_REM_ACCESS_ERR);
	guest_pages_free(&fast.pages);
}

static void test_send_with_invalidate_ends_a_fast_registration(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	struct pvrdma_sq_wqe_hdr header;
	struct pvrdma_sge sge = buffer_sge(&p->buffer[1], 0, 64);
	struct pvrdma_cqe cqe;
	struct fast fast;

	fast_open(g, &fast, 1);
	header = reg_header(&fast, 0, 100);
	assert_int_equal(post_local(p, &header, PVRDMA_WC_FAST_REG_MR), PVRDMA_WC_SUCCESS);
	qp_post_recv(g, &p->qp[1], 5, &sge, 1);
	header = rdma_header(p, PVRDMA_WR_SEND_WITH_INV, 0);
	header.ex.invalidate_rkey = fast.key;
	execute(p, &header, 0, 64);
	expect_cqe(p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
	cqe = expect_cqe(p, 1, 5, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
	assert_int_equal(cqe.wc_flags, PVRDMA_WC_WITH_INVALIDATE);
	assert_int_equal(cqe.imm_data, fast.key);
	assert_int_equal(write_status(p, 0, 8, fast.key), PVRDMA_WC_REM_ACCESS_ERR);
	guest_pages_free(&fast.pages);
}

static void test_fast_registration_with_bad_fields_fails(void **state)
{
	enum {
		SHIFT,
		MANY_PAGES,
		MORE_PAGES,
		NO_PAGES,
		TOO_LONG,
		NO_LENGTH,
		BAD_DIR,
		BAD_PAGE,
		OTHER_KEY,
		ROWS
	};

	(void)state;
	for (int row = 0; row < ROWS; row++) {
		struct pair p;
		struct pvrdma_sq_wqe_hdr header;
		struct fast fast;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		fast_open(&p.guest[1], &fast, 2);
		header = reg_header(&fast, 100, PV_PAGE);
		switch (row) {
		case SHIFT: header.wr.fast_reg.page_shift = 13; break;
		case MANY_PAGES: header.wr.fast_reg.page_list_len = 129; break;
		case MORE_PAGES:
			header.wr.fast_reg.page_list_len = 3;
			header.wr.fast_reg.length = 3 * PV_PAGE - 100;
			table_of(&p.guest[1], &fast.pages)[2] = guest_page(&p.guest[1]);
			break;
		case NO_PAGES: header.wr.fast_reg.page_list_len = 0; break;
		case TOO_LONG: header.wr.fast_reg.length = 2 * PV_PAGE - 99; break;
		case NO_LENGTH: header.wr.fast_reg.length = 0; break;
		case BAD_DIR: header.wr.fast_reg.pl_pdir_dma = GUEST_EXTRA; break;
		case BAD_PAGE: table_of(&p.guest[1], &fast.pages)[1] = GUEST_EXTRA; break;
		case OTHER_KEY: header.wr.fast_reg.rkey = p.buffer[1].key; break;
		default: break;
		}
		assert_int_equal(post_local(&p, &header, 0), PVRDMA_WC_LOC_QP_OP_ERR);
		assert_int_equal(qp_query(&p.guest[1], &p.qp[1], NULL), URXE_QPS_ERR);
		guest_pages_free(&fast.pages);
		pair_close(&p);
	}
}

static void test_fast_mr_has_1_to_128_pages(void **state)
{
	struct pair *p = *state;
	struct pv_cmd_create_mr create = {.pd_handle = p->guest[1].pd, .flags = PV_MR_FLAG_FRMR};
	uint32_t handle, key;

	assert_int_equal(mr_create(&p->guest[1], &create, &handle, &key), -EINVAL);
	create.nchunks = 129;
	assert_int_equal(mr_create(&p->guest[1], &create, &handle, &key), -EINVAL);
	create.nchunks = 128;
	assert_int_equal(mr_create(&p->guest[1], &create, &handle, &key), 0);
}

/* --- Removed memory */

/* Bytes of a region lie in memory that is unplugged: only they are lost. */
static void test_region_loses_only_its_unplugged_pages(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	struct pv_cmd_create_mr create;
	struct pages pages;
	uint32_t handle, key;

	guest_plug(g);
	guest_pages(g, 3, &pages);
	table_of(g, &pages)[1] = GUEST_EXTRA;
	create = create_of(p, &pages, 3 * PV_PAGE);
	assert_int_equal(mr_create(g, &create, &handle, &key), 0);
	assert_int_equal(write_status(p, create.start, 3 * PV_PAGE, key), 0);
	guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
	assert_int_equal(write_status(p, create.start + 2 * PV_PAGE, PV_PAGE, key), 0);
	assert_int_equal(write_status(p, create.start, 3 * PV_PAGE, key), PVRDMA_WC_REM_ACCESS_ERR);
	reconnect(p);
	/* Memory at the same address later is not the region's. */
	guest_plug(g);
	assert_int_equal(write_status(p, create.start + PV_PAGE, 8, key), PVRDMA_WC_REM_ACCESS_ERR);
	guest_pages_free(&pages);
}

/* One removal of two regions with a hole between them. */
static void test_one_removal_spans_two_memory_regions(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	const uint64_t half = GUEST_EXTRA_SIZE / 2;
	struct pv_cmd_create_mr create;
	struct pages pages;
	uint32_t handle, key;

	guest_plug(g);
	guest_unplug(g, GUEST_EXTRA + half, PV_PAGE);
	guest_pages(g, 4, &pages);
	table_of(g, &pages)[1] = GUEST_EXTRA + half - PV_PAGE;
	table_of(g, &pages)[2] = GUEST_EXTRA + half + PV_PAGE;
	create = create_of(p, &pages, 4 * PV_PAGE);
	assert_int_equal(mr_create(g, &create, &handle, &key), 0);
	assert_int_equal(write_status(p, create.start, 4 * PV_PAGE, key), 0);
	guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
	for (unsigned i = 0; i < 4; i++) {
		const bool gone = i == 1 || i == 2;

		assert_int_equal(write_status(p, create.start + i * PV_PAGE, 8, key),
				 gone ? PVRDMA_WC_REM_ACCESS_ERR : 0);
		if (gone)
			reconnect(p);
	}
	guest_pages_free(&pages);
}

static void test_fast_region_loses_its_unplugged_page(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];
	struct pvrdma_sq_wqe_hdr header;
	struct fast fast;

	guest_plug(g);
	fast_open(g, &fast, 1);
	table_of(g, &fast.pages)[0] = GUEST_EXTRA;
	header = reg_header(&fast, 0, 100);
	assert_int_equal(post_local(p, &header, PVRDMA_WC_FAST_REG_MR), PVRDMA_WC_SUCCESS);
	assert_int_equal(write_status(p, 0, 8, fast.key), 0);
	guest_unplug(g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
	assert_int_equal(write_status(p, 0, 8, fast.key), PVRDMA_WC_REM_ACCESS_ERR);
	guest_pages_free(&fast.pages);
}

/* The memory of both ends of a transfer goes away at each point of time of the transfer. */
static void test_memory_may_go_at_any_point_of_a_transfer(void **state)
{
	(void)state;
	for (unsigned steps = 0; steps < 12; steps++) {
		struct pair p;
		struct pvrdma_sq_wqe_hdr header;
		struct pvrdma_sge sge;
		struct pvrdma_cqe cqe;
		const int side = steps % 2;
		unsigned pages = 0;

		pair_open(&p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
		guest_plug(&p.guest[side]);
		/* The second half of the buffer moves to the plugged memory. */
		for (uint32_t i = p.buffer[side].pages.n / 2; i < p.buffer[side].pages.n; i++)
			table_of(&p.guest[side], &p.buffer[side].pages)[i] =
				GUEST_EXTRA + PV_PAGE * pages++;
		{
			const struct pv_cmd_create_mr create = {
				.start = p.buffer[side].va,
				.length = BUFFER,
				.pdir_dma = p.buffer[side].pages.dir,
				.nchunks = p.buffer[side].pages.n,
				.pd_handle = p.guest[side].pd,
				.access_flags = ALL_ACCESS,
			};

			assert_int_equal(mr_create(&p.guest[side], &create, &p.buffer[side].handle,
						   &p.buffer[side].key),
					 0);
		}
		header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
		sge = buffer_sge(&p.buffer[0], 0, BUFFER);
		qp_post_send(&p.guest[0], &p.qp[0], &header, &sge);
		for (unsigned i = 0; i < steps / 2; i++)
			net_step(&p.net);
		guest_unplug(&p.guest[side], GUEST_EXTRA, GUEST_EXTRA_SIZE);
		net_run(&p.net);
		assert_true(cq_poll(&p.guest[0], &p.cq[0], &cqe));
		assert_int_equal(cqe.status,
				 side ? PVRDMA_WC_REM_ACCESS_ERR : PVRDMA_WC_LOC_PROT_ERR);
		pair_close(&p);
	}
}

/* The command slots are gone: commands fail, and nothing is touched. */
static void test_commands_fail_when_their_slots_are_unplugged(void **state)
{
	struct pair *p = *state;
	struct guest *g = &p->guest[1];

	guest_unplug(g, 0, GUEST_LOW_SIZE);
	guest_unplug(g, GUEST_HIGH, GUEST_HIGH_SIZE);
	guest_write(g, PV_REG_REQUEST, 0);
	assert_int_equal(guest_read(g, PV_REG_ERR), EFAULT);
	pvrdma_set_link(g->dev, false);
	pvrdma_flush(g->dev);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_EVENTS_LOST] > 0, 1);
	net_run(&p->net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(test_registration_with_bad_attributes_fails),
		PAIR_TEST(test_unknown_access_flags_are_ignored),
		PAIR_TEST(test_write_past_the_end_of_a_region_is_refused),
		PAIR_TEST(test_rkey_of_a_destroyed_mr_is_refused),
		PAIR_TEST(test_region_of_1_gib_is_registered),
		PAIR_TEST(test_dma_region_covers_all_memory_but_holes),
		PAIR_TEST(test_dma_region_without_write_right_refuses_writes),
		PAIR_TEST(test_dma_region_follows_memory),
		PAIR_TEST(test_fast_registration_grants_until_local_invalidate),
		PAIR_TEST(test_send_with_invalidate_ends_a_fast_registration),
		cmocka_unit_test(test_fast_registration_with_bad_fields_fails),
		PAIR_TEST(test_fast_mr_has_1_to_128_pages),
		PAIR_TEST(test_region_loses_only_its_unplugged_pages),
		PAIR_TEST(test_one_removal_spans_two_memory_regions),
		PAIR_TEST(test_fast_region_loses_its_unplugged_page),
		cmocka_unit_test(test_memory_may_go_at_any_point_of_a_transfer),
		PAIR_TEST(test_commands_fail_when_their_slots_are_unplugged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
