/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A machine whose PVRDMA device has an HCA that a provider double plays, and the device's owner. */
#ifndef URXE_TEST_PVRDMA_HCA_MACHINE_H
#define URXE_TEST_PVRDMA_HCA_MACHINE_H

#include "pair.h"

#include "fake_hca.h"

#define PAGE_OF_CONTEXT 3
#define LEASED          0x900000u /* the first number of the owner */

static struct {
	struct guest g;
	struct hca *hca;
	struct pvrdma_hca of_device;
	struct pvrdma_owner owner;
	struct cq cq;
	struct qp qp;
	struct buffer buffer;
	uint32_t next_qpn, attached, freed_qpns;
	uint32_t prepared; /* calls of prepare */
	int prepare_error;
	/* The owner finds a way without the HCA to the peer of which `connecting` tells. */
	bool finds_way, has_way;
	bool no_atomics; /* of the HCA */
} f;

/* --- The owner of the device */

static inline uint32_t take_qpn(void *ctx)
{
	(void)ctx;
	return f.next_qpn++;
}

static inline void free_qpn(void *ctx, uint32_t qpn)
{
	(void)ctx;
	assert_true(qpn >= LEASED);
	f.freed_qpns++;
}

static inline void connecting(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)ctx;
	(void)mac;
	(void)qpn;
	f.has_way = f.finds_way;
}

static inline bool takes(void *ctx, void *qp_ctx, const struct urxe_qp_attr *attr)
{
	(void)ctx;
	(void)qp_ctx;
	(void)attr;
	return !f.has_way;
}

static const struct hca_owner hca_owner = {.takes = takes};

static inline void set_gid(void *ctx, uint32_t index, const struct urxe_gid *gid, bool v1)
{
	(void)ctx;
	hca_set_gid(f.hca, index, gid, v1, 0);
	hca_read_gids(f.hca);
}

static inline bool has_gid(void *ctx, uint32_t index)
{
	(void)ctx;
	return hca_has_gid(f.hca, index);
}

static inline int prepare(void *ctx, uint32_t pd, const struct urxe_path *path, bool connects)
{
	(void)ctx;
	assert_int_equal(pd, f.g.pd);
	assert_int_equal(path->sgid_index, 1);
	assert_int_equal(connects, f.qp.type == PV_QPT_RC);
	f.prepared++;
	return f.prepare_error;
}

static inline void attach(void *ctx, struct urxe_dev *engine)
{
	(void)ctx;
	f.attached++;
	hca_attach(f.hca, engine);
}

static inline void detach(void *ctx)
{
	(void)ctx;
	hca_detach(f.hca);
}

/* --- The machine */

static inline void give_hca(void)
{
	f.of_device = (struct pvrdma_hca){
		.atomics = !f.no_atomics,
		.set_gid = set_gid,
		.has_gid = has_gid,
		.prepare = prepare,
		.attach = attach,
		.detach = detach,
		.max_qp_wr = 1000,
		.max_sge = 3,
		.max_srq_wr = 64,
		.max_srq_sge = 2,
		.max_rd_atomic = 5,
		.max_init_rd_atomic = 6,
	};
	pvrdma_set_hca(f.g.dev, &f.of_device);
}

static inline int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	f.next_qpn = LEASED;
	f.owner = (struct pvrdma_owner){
		.take_qpn = take_qpn, .free_qpn = free_qpn, .connecting = connecting};
	fake_hca_init();
	assert_int_equal(hca_open(&fake_hca.verbs, "fake0", 1, &hca_owner, &f.hca), 0);
	hca_set_pkeys(f.hca, (const uint16_t[]){0xffff}, 1);
	guest_open(&f.g, &(struct guest_attr){.id = 1, .owner = &f.owner});
	return 0;
}

/* The driver's lists of pages of objects that the test has not closed. */
static inline void free_pages(void)
{
	guest_pages_free(&f.cq.pages);
	guest_pages_free(&f.qp.pages);
	guest_pages_free(&f.buffer.pages);
}

static inline int teardown(void **state)
{
	(void)state;
	free_pages();
	guest_close(&f.g);
	assert_int_equal(fake_hca.pds + fake_hca.mrs + fake_hca.cqs + fake_hca.srqs + fake_hca.qps,
			 0);
	hca_close(f.hca);
	return 0;
}

static inline void open_qp(struct qp *qp)
{
	const struct qp_attr attr = {
		.type = PV_QPT_RC, .send_cq = &f.cq, .recv_cq = &f.cq, .sge = 2};

	qp_open(&f.g, qp, &attr);
}

static inline void open_objects(void)
{
	free_pages();
	cq_open(&f.g, &f.cq, 64);
	buffer_open(&f.g, &f.buffer, VA, 3 * PV_PAGE, ALL_ACCESS);
	open_qp(&f.qp);
}

/* A program of a machine that has the HCA's address. */
static inline void start(void)
{
	give_hca();
	guest_start(&f.g);
	assert_int_equal(guest_bind(&f.g, 1, &fake_gid, PV_NO_VLAN), 0);
	guest_enter_context(&f.g, PAGE_OF_CONTEXT);
	open_objects();
}

static inline void connect_qp(void)
{
	struct pv_qp_attr attr = {
		.qp_state = URXE_QPS_INIT,
		.port_num = 1,
		.path_mtu = URXE_MTU_1024,
		.dest_qp_num = 0x99,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.ah_attr = {.dgid = {[10] = 0xff, 0xff, 192, 0, 2, 9},
			    .ah_flags = 1,
			    .port_num = 1,
			    .sgid_index = 1,
			    .dmac = {2, 3}},
	};

	assert_int_equal(
		qp_modify(&f.g, &f.qp, &attr,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS),
		0);
	attr.qp_state = URXE_QPS_RTR;
	assert_int_equal(qp_modify(&f.g, &f.qp, &attr,
				   URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU |
					   URXE_QP_DEST_QPN | URXE_QP_RQ_PSN |
					   URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER),
			 0);
	attr.qp_state = URXE_QPS_RTS;
	assert_int_equal(qp_modify(&f.g, &f.qp, &attr,
				   URXE_QP_STATE | URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT |
					   URXE_QP_RNR_RETRY | URXE_QP_SQ_PSN |
					   URXE_QP_MAX_QP_RD_ATOMIC),
			 0);
}

#endif
