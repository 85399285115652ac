/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The PVRDMA device with an HCA that a provider double plays: which objects the HCA has, and when
 * it loses them. */
#include "hca_machine.h"

#include <errno.h>

#include <vnic/dirty_log.h>

static void post_send(void)
{
	const struct pvrdma_sge sge = buffer_sge(&f.buffer, 10, 100);
	const struct pvrdma_sq_wqe_hdr header = {.wr_id = 7,
						 .num_sge = 1,
						 .opcode = PVRDMA_WR_SEND,
						 .send_flags = URXE_SEND_SIGNALED};

	qp_post_send(&f.g, &f.qp, &header, &sge);
}

static void post_receive(void)
{
	const struct pvrdma_sge sge = buffer_sge(&f.buffer, 0, 100);

	qp_post_recv(&f.g, &f.qp, 8, &sge, 1);
}

/* Posts receives until the engine's queue is full, so that the last one stays in the ring. */
static void post_receives_too_many(void)
{
	const uint64_t *posted = &pvrdma_counters(f.g.dev)[PVRDMA_RECVS];
	uint64_t before;

	do {
		before = *posted;
		post_receive();
	} while (*posted != before);
}

static void expect_failed_qp(void)
{
	struct pv_eqe event;

	assert_true(guest_event(&f.g, &event));
	assert_int_equal(event.type, URXE_ASYNC_QP_FATAL);
	assert_int_equal(event.info, f.qp.handle);
	assert_int_equal(qp_query(&f.g, &f.qp, NULL), URXE_QPS_ERR);
}

/* --- Tests */

static void objects_of_programs_are_the_hcas(void **state)
{
	struct fake_qp *qp;

	(void)state;
	start();
	qp = fake_hca.last_qp;
	assert_int_equal(f.attached, 1);
	assert_int_equal(fake_hca.qps, 1);
	assert_int_equal(fake_hca.mrs, 1);
	assert_int_equal(f.qp.qpn, qp->ibv.qp_num);
	assert_int_equal(f.buffer.key, fake_hca.last_mr.lkey);
	/* Scattered pages of the machine are one range, with the same offset in a page. */
	assert_int_equal(fake_hca.last_mr.length, 3 * PV_PAGE);
	assert_int_equal((uintptr_t)fake_hca.last_mr.addr % PV_PAGE, VA % PV_PAGE);
	buffer_fill(&f.g, &f.buffer, 0, 3 * PV_PAGE, 5);
	for (uint32_t i = 0; i < 3 * PV_PAGE; i++)
		assert_int_equal(((uint8_t *)fake_hca.last_mr.addr)[i],
				 *buffer_at(&f.g, &f.buffer, i));
	connect_qp();
	post_send();
	assert_int_equal(qp->n_sends, 1);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	hca_poll(f.hca);
	pvrdma_hca_polled(f.g.dev, 1);
	{
		struct pvrdma_cqe cqe;

		assert_true(cq_poll(&f.g, &f.cq, &cqe));
		assert_int_equal(cqe.wr_id, 7);
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
	}
	qp_close(&f.g, &f.qp);
	buffer_close(&f.g, &f.buffer);
	assert_int_equal(fake_hca.qps + fake_hca.mrs, 0);
}

static uint8_t *page_at(uint64_t addr)
{
	return vnic_guest_memory_range(f.g.memory, addr, PV_PAGE, true);
}

/*
 * Two regions of the machine's memory that this process has mapped side by side: the second mapping
 * of their pages is made of both.
 */
static void pages_of_neighbouring_regions_become_one_range(void **state)
{
	const uint64_t last = GUEST_HIGH + GUEST_HIGH_SIZE - PV_PAGE;
	struct pv_cmd_create_mr create = {.start = (VA & ~UINT64_C(0xfff)) + 0x1000000,
					  .length = 3 * PV_PAGE,
					  .access_flags = ALL_ACCESS,
					  .nchunks = 3};
	uint64_t addrs[3] = {last, 0, last - 4 * PV_PAGE};
	uint32_t handle, key;
	struct pages pages;

	(void)state;
	start();
	if (page_at(0) + GUEST_LOW_SIZE == page_at(GUEST_HIGH)) {
		addrs[0] = GUEST_LOW_SIZE - PV_PAGE;
		addrs[1] = GUEST_HIGH;
	} else if (page_at(last) + PV_PAGE != page_at(0)) {
		skip();
	}
	guest_pages(&f.g, 3, &pages);
	for (uint32_t i = 0; i < 3; i++) {
		table_of(&f.g, &pages)[i] = addrs[i];
		memset(page_at(addrs[i]), 'a' + (int)i, PV_PAGE);
	}
	create.pd_handle = f.g.pd;
	create.pdir_dma = pages.dir;
	assert_int_equal(mr_create(&f.g, &create, &handle, &key), 0);
	assert_int_equal(key, fake_hca.last_mr.lkey);
	for (uint32_t i = 0; i < 3; i++)
		assert_memory_equal((uint8_t *)fake_hca.last_mr.addr + i * PV_PAGE,
				    page_at(addrs[i]), PV_PAGE);
	assert_int_equal(guest_handle_command(&f.g, PV_CMD_DESTROY_MR, handle), 0);
	guest_pages_free(&pages);
	qp_close(&f.g, &f.qp);
}

static void a_machine_without_the_hcas_address_is_the_engines(void **state)
{
	struct urxe_gid other = fake_gid;

	(void)state;
	other.raw[15]++;
	give_hca();
	guest_start(&f.g);
	assert_int_equal(guest_bind(&f.g, 1, &other, PV_NO_VLAN), 0);
	guest_enter_context(&f.g, PAGE_OF_CONTEXT);
	open_objects();
	assert_int_equal(f.attached, 0);
	assert_int_equal(f.qp.qpn, LEASED);
	assert_int_equal(fake_hca.mrs, 0);
}

static int try_srq_qp(struct srq *srq, struct qp *qp)
{
	const struct qp_attr attr = {
		.type = PV_QPT_RC, .send_cq = &f.cq, .recv_cq = &f.cq, .sge = 1, .srq = srq};

	return qp_try_open(&f.g, qp, &attr);
}

static void open_srq_qp(struct srq *srq, struct qp *qp)
{
	assert_int_equal(srq_try_open(&f.g, srq, 16, 1, 0), 0);
	assert_int_equal(try_srq_qp(srq, qp), 0);
}

/* The driver may have given up the creation of an SRQ without queue pairs, and freed its ring. */
static void the_ring_of_an_unused_srq_is_not_written(void **state)
{
	struct pv_ring_indices *indices;
	struct srq srq;

	(void)state;
	start();
	connect_qp();
	assert_int_equal(srq_try_open(&f.g, &srq, 16, 1, 0), 0);
	indices = &((struct pv_ring_state *)guest_at(&f.g, srq.pages.addr[0]))->rx;
	indices->prod_tail = 3;
	post_receives_too_many();
	pvrdma_hca_polled(f.g.dev, 1);
	assert_int_equal(indices->cons_head, 0);
	qp_close(&f.g, &f.qp);
	srq_close(&f.g, &srq);
	buffer_close(&f.g, &f.buffer);
}

static void unbind(uint32_t index)
{
	union pv_request request = {.destroy_bind = {.index = index}};
	union pv_response response;

	assert_int_equal(guest_command(&f.g, PV_CMD_DESTROY_BIND, &request, &response), 0);
}

/* The HCA could not send from any address of the machine. */
static void new_queue_pairs_without_the_hcas_address_are_the_engines(void **state)
{
	struct urxe_gid other = fake_gid;
	struct srq srq;
	struct qp qp;

	(void)state;
	other.raw[15]++;
	start();
	unbind(1);
	assert_int_equal(guest_bind(&f.g, 2, &other, PV_NO_VLAN), 0);
	open_srq_qp(&srq, &qp);
	assert_int_equal(qp.qpn, LEASED);
	assert_int_equal(fake_hca.srqs, 0);
	assert_int_equal(fake_hca.qps, 1);
	qp_close(&f.g, &qp);
	srq_close(&f.g, &srq);
	assert_int_equal(guest_bind(&f.g, 1, &fake_gid, PV_NO_VLAN), 0);
	open_srq_qp(&srq, &qp);
	assert_int_equal(qp.qpn, fake_hca.last_qp->ibv.qp_num);
	qp_close(&f.g, &qp);
	/* The HCA has the queue's requests. */
	unbind(1);
	assert_int_equal(try_srq_qp(&srq, &qp), -EOPNOTSUPP);
	srq_close(&f.g, &srq);
}

/* Queue pairs of the kernel use regions that the HCA cannot have: all memory, fast registrations.
 */
static void the_kernels_queue_pairs_are_the_engines(void **state)
{
	struct pv_cmd_create_mr all = {.flags = PV_MR_FLAG_DMA, .access_flags = ALL_ACCESS};
	struct pv_cmd_create_mr fast = {.flags = PV_MR_FLAG_FRMR, .nchunks = 4};
	uint32_t handle, key;

	(void)state;
	give_hca();
	guest_start(&f.g);
	assert_int_equal(guest_bind(&f.g, 1, &fake_gid, PV_NO_VLAN), 0);
	assert_int_equal(f.attached, 1);
	open_objects();
	assert_int_equal(f.qp.qpn, LEASED);
	assert_int_equal(fake_hca.qps, 0);
	fake_hca.mrs = 0;
	all.pd_handle = fast.pd_handle = f.g.pd;
	assert_int_equal(mr_create(&f.g, &all, &handle, &key), 0);
	assert_int_equal(mr_create(&f.g, &fast, &handle, &key), 0);
	assert_int_equal(fake_hca.mrs, 0);
	fake_hca.mrs = 1;
}

static void a_refused_queue_pair_is_the_engines(void **state)
{
	(void)state;
	fake_hca.no_qps = true;
	start();
	assert_int_equal(f.qp.qpn, LEASED);
	assert_int_equal(fake_hca.qps, 0);
	qp_close(&f.g, &f.qp);
}

/* The HCA may choose numbers that urxed has leased to the machine. */
static void a_number_that_the_hca_has_is_passed_over(void **state)
{
	struct qp other, third;

	(void)state;
	fake_hca.next_qpn = LEASED;
	start();
	assert_int_equal(f.qp.qpn, LEASED);
	assert_int_equal(fake_hca.qps, 1);
	fake_hca.no_qps = true;
	open_qp(&other);
	assert_int_equal(other.qpn, LEASED + 1);
	assert_int_equal(f.freed_qpns, 1);
	/* The engine has the number that the HCA chooses. */
	fake_hca.no_qps = false;
	open_qp(&third);
	assert_int_equal(third.qpn, LEASED + 2);
	assert_int_equal(fake_hca.qps, 1);
	qp_close(&f.g, &third);
	qp_close(&f.g, &other);
	assert_int_equal(f.freed_qpns, 3);
}

#define REGION_PAGES 16 /* those that a region's own objects count as */
/* The memory may begin and end within a page. */
#define PAGES_OF(length) ((length) / PV_PAGE + 2 + REGION_PAGES)

static uint64_t room_of_regions(void)
{
	return UINT64_C(4) * (GUEST_LOW_SIZE + GUEST_HIGH_SIZE) / PV_PAGE;
}

static void the_driver_sees_the_limits_of_both(void **state)
{
	const struct pv_device_caps *caps;

	(void)state;
	start();
	caps = guest_caps(&f.g);
	/* The driver makes these powers of two. */
	assert_int_equal(caps->max_qp_wr, 512);
	assert_int_equal(caps->max_srq_wr, 64);
	assert_int_equal(caps->max_sge, 2);
	assert_int_equal(caps->max_sge_rd, 2);
	assert_int_equal(caps->max_srq_sge, 2);
	assert_int_equal(caps->max_qp_rd_atom, 5);
	assert_int_equal(caps->max_qp_init_rd_atom, 6);
	assert_int_equal(caps->max_mr, room_of_regions() / PAGES_OF(1));
	assert_int_not_equal(caps->atomic_ops, 0);
}

static void the_driver_sees_no_atomics_that_the_hca_lacks(void **state)
{
	(void)state;
	f.no_atomics = true;
	start();
	assert_int_equal(guest_caps(&f.g)->atomic_ops, 0);
}

/* Behind a virtual IOMMU that maps little until the driver needs it. */
static void a_driver_with_little_mapped_memory_sees_some_regions(void **state)
{
	(void)state;
	guest_close(&f.g);
	guest_open(&f.g, &(struct guest_attr){.id = 1, .owner = &f.owner, .small = true});
	give_hca();
	guest_start(&f.g);
	assert_int_equal(guest_caps(&f.g)->max_mr, 1024);
}

static void an_hca_that_goes_fails_its_queue_pairs(void **state)
{
	struct pvrdma_cqe cqe;
	uint32_t key;

	(void)state;
	start();
	key = f.buffer.key;
	connect_qp();
	post_send();
	pvrdma_set_hca(f.g.dev, NULL);
	assert_int_equal(fake_hca.qps + fake_hca.mrs + fake_hca.cqs, 0);
	assert_true(cq_poll(&f.g, &f.cq, &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_WR_FLUSH_ERR);
	expect_failed_qp();
	qp_close(&f.g, &f.qp);
	/* The next one has a region that is the engine's alone. */
	open_objects();
	assert_int_equal(f.qp.qpn, LEASED);
	assert_int_not_equal(f.buffer.key, key);
	qp_close(&f.g, &f.qp);
	give_hca();
	assert_int_equal(f.attached, 2);
	open_objects();
	assert_int_equal(f.qp.qpn, fake_hca.last_qp->ibv.qp_num);
}

#define MANY 600 /* events; the ring has room for 512 */

/* Reads all events; false: one was not QP_FATAL of a queue pair that had none yet. */
static bool read_failures(bool failed[MANY + 1], uint32_t *n)
{
	struct pv_eqe event;

	while (guest_event(&f.g, &event)) {
		if (event.type != URXE_ASYNC_QP_FATAL || event.info > MANY || failed[event.info])
			return false;
		failed[event.info] = true;
		(*n)++;
	}
	return true;
}

static void an_hca_that_goes_fails_more_queue_pairs_than_the_ring_holds(void **state)
{
	struct cq recv_cq;
	/* A CQ of the HCA has at most 1000 entries. */
	const struct qp_attr attr = {.type = PV_QPT_UD,
				     .send_cq = &f.cq,
				     .recv_cq = &recv_cq,
				     .send_wr = 1,
				     .recv_wr = 1,
				     .sge = 1};
	const struct pv_qp_attr to_init = {.qp_state = URXE_QPS_INIT, .port_num = 1};
	bool failed[MANY + 1] = {false};
	uint32_t n = 0;

	(void)state;
	start();
	cq_open(&f.g, &recv_cq, 64);
	for (int i = 0; i < MANY; i++) {
		struct qp qp;

		qp_open(&f.g, &qp, &attr);
		assert_int_equal(
			qp_modify(&f.g, &qp, &to_init,
				  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY),
			0);
		guest_pages_free(&qp.pages);
	}
	guest_pages_free(&recv_cq.pages);
	pvrdma_set_hca(f.g.dev, NULL);
	pvrdma_flush(f.g.dev);
	assert_true(read_failures(failed, &n));
	assert_int_equal(n, 512);
	assert_true(pvrdma_next_deadline(f.g.dev) != URXE_NEVER);
	pvrdma_flush(f.g.dev);
	assert_int_equal(f.g.interrupts[PV_VECTOR_ASYNC], 2);
	assert_true(read_failures(failed, &n));
	assert_int_equal(n, MANY);
	assert_int_equal(pvrdma_counters(f.g.dev)[PVRDMA_EVENTS_LOST], 0);
	assert_true(pvrdma_next_deadline(f.g.dev) == URXE_NEVER);
}

/* The machine's memory goes: the HCA accesses none of a region that had some. */
static void removed_memory_leaves_the_hca(void **state)
{
	struct buffer other;

	(void)state;
	start();
	guest_plug(&f.g);
	buffer_open(&f.g, &other, VA + 0x1000000, PV_PAGE, ALL_ACCESS);
	assert_int_equal(fake_hca.mrs, 2);
	guest_unplug(&f.g, GUEST_EXTRA, GUEST_EXTRA_SIZE);
	assert_int_equal(fake_hca.mrs, 2);
	/* One page of the first region. */
	guest_unplug(&f.g, f.buffer.pages.addr[1], PV_PAGE);
	assert_int_equal(fake_hca.mrs, 1);
	guest_unplug(&f.g, 0, GUEST_EXTRA);
	assert_int_equal(fake_hca.mrs, 0);
	guest_pages_free(&other.pages);
}

/* Linux does not pin a file on a disk. */
static void memory_that_cannot_be_pinned_is_the_engines(void **state)
{
	(void)state;
	fake_hca.mr_error = EFAULT;
	start();
	assert_int_equal(f.attached, 1);
	assert_int_equal(fake_hca.mrs, 0);
	assert_int_not_equal(f.buffer.key, 0);
	connect_qp();
	post_send();
	assert_int_equal(fake_hca.last_qp->n_sends, 0);
}

#define PAGES_OF_TABLE 512u

/* A list of pages that lie side by side: the HCA has the region without a second mapping. */
static struct pv_cmd_create_mr long_region(struct pages *pages)
{
	guest_pages(&f.g, 1, pages);
	for (uint32_t i = 0; i < PAGES_OF_TABLE; i++)
		table_of(&f.g, pages)[i] = GUEST_HIGH + i * PV_PAGE;
	return (struct pv_cmd_create_mr){.start = VA & ~UINT64_C(0xfff),
					 .length = PAGES_OF_TABLE * PV_PAGE,
					 .access_flags = ALL_ACCESS,
					 .nchunks = PAGES_OF_TABLE,
					 .pd_handle = f.g.pd,
					 .pdir_dma = pages->dir};
}

static uint64_t refused_regions(void)
{
	return pvrdma_counters(f.g.dev)[PVRDMA_HCA_MEMORY_FULL];
}

/* A machine that registers the same memory again and again. */
static void the_hca_pins_a_bounded_number_of_pages(void **state)
{
	const uint64_t room = room_of_regions();
	uint32_t handle, last = 0, key, n = 0;
	struct pv_cmd_create_mr create;
	struct pages pages;

	(void)state;
	start();
	create = long_region(&pages);
	while (!mr_create(&f.g, &create, &handle, &key) && n <= room / PAGES_OF_TABLE) {
		last = handle;
		n++;
	}
	/* The buffer has some pages, too. */
	assert_in_range(n, room / PAGES_OF(create.length) - 1, room / PAGES_OF(create.length));
	assert_int_equal(fake_hca.mrs, n + 1);
	assert_int_equal(refused_regions(), 1);
	assert_int_equal(mr_create(&f.g, &create, &handle, &key), -ENOMEM);
	assert_int_equal(refused_regions(), 2);
	/* A region that ends makes room for another one. */
	assert_int_equal(guest_handle_command(&f.g, PV_CMD_DESTROY_MR, last), 0);
	assert_int_equal(mr_create(&f.g, &create, &handle, &key), 0);
	/* The engine's own regions are not pinned. */
	pvrdma_set_hca(f.g.dev, NULL);
	assert_int_equal(mr_create(&f.g, &create, &handle, &key), 0);
	give_hca();
	assert_int_equal(mr_create(&f.g, &create, &handle, &key), 0);
	assert_int_equal(fake_hca.mrs, 1);
	guest_pages_free(&pages);
	qp_close(&f.g, &f.qp);
}

/* Each small region pins a page, and needs objects of the kernel. */
static void the_hca_has_a_bounded_number_of_small_regions(void **state)
{
	const uint64_t most = room_of_regions() / PAGES_OF(1);
	struct pv_cmd_create_mr create;
	uint32_t handle, key, n = 0;
	struct pages pages;

	(void)state;
	start();
	create = long_region(&pages);
	create.length = create.nchunks = 1;
	while (n <= most && !mr_create(&f.g, &create, &handle, &key))
		n++;
	assert_in_range(n, most - 1, most);
	assert_int_equal(refused_regions(), 1);
	/* The engine's own regions have no such bound. */
	pvrdma_set_hca(f.g.dev, NULL);
	assert_int_equal(mr_create(&f.g, &create, &handle, &key), 0);
	guest_pages_free(&pages);
	qp_close(&f.g, &f.qp);
}

/* As the kernel does beyond RLIMIT_MEMLOCK. */
static void a_region_that_the_kernel_does_not_pin_fails(void **state)
{
	struct pv_cmd_create_mr create;
	uint32_t handle, key;
	struct pages pages;

	(void)state;
	start();
	create = long_region(&pages);
	fake_hca.mr_error = ENOMEM;
	assert_int_equal(mr_create(&f.g, &create, &handle, &key), -ENOMEM);
	assert_int_equal(refused_regions(), 1);
	guest_pages_free(&pages);
	qp_close(&f.g, &f.qp);
}

static void no_right_to_access_memory_ends_the_hca(void **state)
{
	(void)state;
	start();
	connect_qp();
	pvrdma_set_bus_master(f.g.dev, false);
	assert_int_equal(fake_hca.qps + fake_hca.mrs, 0);
	pvrdma_set_bus_master(f.g.dev, true);
	pvrdma_flush(f.g.dev);
	expect_failed_qp();
	assert_int_equal(f.attached, 2);
}

static void a_pause_ends_the_queue_pairs_of_the_hca(void **state)
{
	(void)state;
	start();
	connect_qp();
	pvrdma_pause(f.g.dev, 1);
	assert_int_equal(fake_hca.qps + fake_hca.mrs, 0);
	pvrdma_set_hca(f.g.dev, NULL);
	give_hca();
	assert_int_equal(f.attached, 1);
	pvrdma_resume(f.g.dev, 2);
	assert_int_equal(f.attached, 2);
	expect_failed_qp();
}

static void a_machine_with_failed_queue_pairs_migrates(void **state)
{
	(void)state;
	start();
	connect_qp();
	f.owner.demand_qpn = NULL;
	assert_int_equal(guest_migrate(&f.g), 0);
	assert_int_equal(fake_hca.qps + fake_hca.mrs, 0);
	expect_failed_qp();
	give_hca();
	assert_int_equal(f.attached, 2);
}

static struct {
	uint64_t bytes;
	const uint8_t *first;
} logged;

static void add_to_log(struct vnic_dirty_log *log, const void *bytes, uint64_t size)
{
	(void)log;
	if (!logged.bytes)
		logged.first = bytes;
	logged.bytes += size;
}

/* A log of changed pages has all memory that the HCA may write to. */
static void writes_of_the_hca_are_logged(void **state)
{
	struct vnic_dirty_log *log, before;
	struct buffer read_only;

	(void)state;
	start();
	buffer_open(&f.g, &read_only, VA + 0x1000000, PV_PAGE, 0);
	assert_int_equal(fake_hca.mrs, 2);
	log = vnic_guest_memory_log(f.g.memory);
	before = *log;
	*log = (struct vnic_dirty_log){.on = true, .add = add_to_log};
	logged.bytes = 0;
	buffer_fill(&f.g, &f.buffer, 0, 64, 9);
	pvrdma_report_hca_writes(f.g.dev);
	assert_int_equal(logged.bytes, 3 * PV_PAGE);
	/* The device has a mapping of its own. */
	assert_memory_equal(logged.first, buffer_at(&f.g, &f.buffer, 0), 64);
	/* Also the writes since the last report, when the HCA ends. */
	logged.bytes = 0;
	pvrdma_set_hca(f.g.dev, NULL);
	assert_true(logged.bytes >= 3 * PV_PAGE);
	assert_int_equal(fake_hca.mrs, 0);
	guest_pages_free(&read_only.pages);
	*log = before;
}

/* The log has the writes to a region that ends before the next look. */
static void writes_to_a_region_that_ends_are_logged(void **state)
{
	struct vnic_dirty_log *log, before;
	struct buffer read_only;
	uint64_t of_command;

	(void)state;
	start();
	buffer_open(&f.g, &read_only, VA + 0x1000000, PV_PAGE, 0);
	log = vnic_guest_memory_log(f.g.memory);
	before = *log;
	*log = (struct vnic_dirty_log){.on = true, .add = add_to_log};
	logged.bytes = 0;
	buffer_close(&f.g, &read_only);
	/* The device writes the command's response. */
	of_command = logged.bytes;
	assert_true(of_command < PV_PAGE);
	buffer_close(&f.g, &f.buffer);
	assert_int_equal(logged.bytes, 2 * of_command + 3 * PV_PAGE);
	*log = before;
}

static bool was_notified(void)
{
	uint32_t handle;

	pvrdma_flush(f.g.dev);
	return guest_notification(&f.g, &handle);
}

/* The device does not know whether the message was solicited. */
static void a_late_solicited_arm_notifies_at_once(void **state)
{
	struct fake_qp *qp;

	(void)state;
	start();
	qp = fake_hca.last_qp;
	connect_qp();
	post_receive();
	post_receive();
	fake_hca_complete_recv(qp, IBV_WC_SUCCESS, 8);
	hca_poll(f.hca);
	assert_false(was_notified());
	cq_arm(&f.g, &f.cq, true);
	assert_true(was_notified());
	/* This one is in the HCA's CQ when the doorbell comes. */
	fake_hca_complete_recv(qp, IBV_WC_SUCCESS, 8);
	cq_arm(&f.g, &f.cq, true);
	hca_poll(f.hca);
	assert_true(was_notified());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(objects_of_programs_are_the_hcas),
		TEST(pages_of_neighbouring_regions_become_one_range),
		TEST(a_machine_without_the_hcas_address_is_the_engines),
		TEST(the_ring_of_an_unused_srq_is_not_written),
		TEST(new_queue_pairs_without_the_hcas_address_are_the_engines),
		TEST(the_kernels_queue_pairs_are_the_engines),
		TEST(a_refused_queue_pair_is_the_engines),
		TEST(a_number_that_the_hca_has_is_passed_over),
		TEST(the_driver_sees_the_limits_of_both),
		TEST(the_driver_sees_no_atomics_that_the_hca_lacks),
		TEST(a_driver_with_little_mapped_memory_sees_some_regions),
		TEST(an_hca_that_goes_fails_its_queue_pairs),
		TEST(an_hca_that_goes_fails_more_queue_pairs_than_the_ring_holds),
		TEST(removed_memory_leaves_the_hca),
		TEST(memory_that_cannot_be_pinned_is_the_engines),
		TEST(the_hca_pins_a_bounded_number_of_pages),
		TEST(the_hca_has_a_bounded_number_of_small_regions),
		TEST(a_region_that_the_kernel_does_not_pin_fails),
		TEST(no_right_to_access_memory_ends_the_hca),
		TEST(a_pause_ends_the_queue_pairs_of_the_hca),
		TEST(a_machine_with_failed_queue_pairs_migrates),
		TEST(writes_of_the_hca_are_logged),
		TEST(writes_to_a_region_that_ends_are_logged),
		TEST(a_late_solicited_arm_notifies_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
