/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pvrdma_side.h"

#include <string.h>
#include <unistd.h>

#include "require.h"

#define OBJECTS   8 /* handles that actions use: more than there are */
#define MAX_PATCH 6
#define SLOT_SGES 16 /* more than a slot of the send queue has room for */
#define BURST     8  /* frames of one call */
#define ROOM      2048
#define ROUNDS    16

/* --- Honest set-up */

static uint32_t plain_mr(struct guest *g, uint32_t flags)
{
	const struct pv_cmd_create_mr create = {
		.pd_handle = g->pd, .access_flags = SIDE_ACCESS, .flags = flags, .nchunks = 4};
	uint32_t handle, key;

	require(!mr_create(g, &create, &handle, &key));
	return key;
}

static void open_objects(struct side *s)
{
	struct guest *g = &s->guest;
	struct qp_attr attr = {.type = PV_QPT_RC,
			       .send_wr = SIDE_WR,
			       .recv_wr = SIDE_WR,
			       .send_cq = &s->cq,
			       .recv_cq = &s->cq};

	guest_start(g);
	cq_open(g, &s->cq, SIDE_CQE);
	require(!srq_try_open(g, &s->srq, SIDE_WR, 2, 1));
	qp_open(g, &s->qps[0], &attr);
	attr.srq = &s->srq;
	qp_open(g, &s->qps[1], &attr);
	attr.srq = NULL;
	attr.type = PV_QPT_UD;
	qp_open(g, &s->qps[2], &attr);
	buffer_open(g, &s->buffer, SIDE_VA, SIDE_LENGTH, SIDE_ACCESS);
	s->dma_key = plain_mr(g, PV_MR_FLAG_DMA);
	s->fast_key = plain_mr(g, PV_MR_FLAG_FRMR);
	guest_pages(g, 4, &s->spare);
}

/* The file has all pages again, also those that an input took away. */
static void restore_file(struct guest *g)
{
	require(!ftruncate(g->fd, GUEST_MEMORY));
}

void side_open(struct side *s, uint8_t id)
{
	require(!vnic_guest_memory_catch_faults(NULL, NULL));
	if (s->guest.bytes)
		restore_file(&s->guest);
	if (s->guest.bytes)
		guest_reopen(&s->guest);
	else
		guest_open(&s->guest, &(struct guest_attr){.id = id, .small = true, .uar = s->uar});
	open_objects(s);
}

void side_close(struct side *s)
{
	guest_pages_free(&s->cq.pages);
	guest_pages_free(&s->srq.pages);
	for (int i = 0; i < SIDE_QPS; i++)
		guest_pages_free(&s->qps[i].pages);
	guest_pages_free(&s->buffer.pages);
	guest_pages_free(&s->spare);
}

void side_restart(struct side *s)
{
	struct guest *g = &s->guest;

	side_close(s);
	restore_file(g);
	pvrdma_set_bus_master(g->dev, true);
	guest_write(g, PV_REG_CTL, PV_CTL_RESET);
	require(!pvrdma_active(g->dev));
	guest_clear(g);
	open_objects(s);
}

void side_add_read_only_memory(struct side *s)
{
	struct guest *g = &s->guest;

	if (!g->keep_extra)
		require(!vnic_guest_memory_map(g->memory, GUEST_EXTRA, g->extra_size, g->fd,
					       GUEST_LOW_SIZE + GUEST_HIGH_SIZE, false));
	g->keep_extra = true;
	pvrdma_memory_added(g->dev);
}

static void connect_queues(struct side *a, int i, struct side *b, int j)
{
	qp_connect(&a->guest, &a->qps[i], &b->guest, &b->qps[j]);
}

void side_connect(struct side *s)
{
	struct side *peer = s->peer;

	/* The queue pairs of a lone side are connected to each other. */
	for (int i = 0; i < SIDE_RC; i++)
		connect_queues(s, i, peer, peer == s ? !i : i);
	qp_datagram(&s->guest, &s->qps[SIDE_RC]);
}

void side_check_write(struct side *s)
{
	struct pvrdma_sq_wqe_hdr header = {
		.num_sge = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .send_flags = URXE_SEND_SIGNALED};
	struct side *peer = s->peer;
	struct net net = {.guest = {&s->guest, peer == s ? NULL : &peer->guest}};
	/* The halves of the buffer do not overlap, where the peer is the side itself. */
	const uint32_t half = SIDE_LENGTH / 2;
	struct pvrdma_sge sge = buffer_sge(&s->buffer, 0, half);
	struct pvrdma_cqe cqe;

	buffer_fill(&s->guest, &s->buffer, 0, half, 77);
	header.wr.rdma.remote_addr = SIDE_VA + half;
	header.wr.rdma.rkey = peer->buffer.key;
	qp_post_send(&s->guest, &s->qps[0], &header, &sge);
	pvrdma_poll(s->guest.dev, s->guest.now);
	net_run(&net);
	require(cq_poll(&s->guest, &s->cq, &cqe) && cqe.status == PVRDMA_WC_SUCCESS);
	require(buffer_has(&peer->guest, &peer->buffer, half, half, 77));
}

/* --- Values */

uint64_t side_value(struct side *s)
{
	const uint8_t choice = script_get8(s->in);

	switch (choice % 12) {
	case 0: return 0;
	case 1: return UINT32_MAX;
	case 2: return UINT64_MAX;
	case 3: return s->buffer.key;
	case 4: return s->dma_key;
	case 5: return s->fast_key + script_get8(s->in) % 3;
	case 6: return SIDE_VA + script_get16(s->in) % (SIDE_LENGTH + 64);
	case 7: return s->spare.dir;
	case 8: return s->buffer.pages.dir;
	case 9: return (uint64_t)script_get8(s->in) * PV_PAGE; /* a page of low memory */
	case 10: return GUEST_EXTRA + script_get8(s->in) % 70 * UINT64_C(4096);
	default: return script_get16(s->in);
	}
}

void side_patch(struct side *s, void *bytes, size_t size)
{
	uint8_t *at = bytes;

	for (unsigned n = script_get8(s->in) % MAX_PATCH; n; n--) {
		const uint64_t value = side_value(s);
		const size_t width = script_get8(s->in) % 2 ? 8 : 4;
		const size_t offset = script_get16(s->in) % (size / 4) * 4;

		if (offset + width <= size)
			memcpy(at + offset, &value, width);
	}
}

/* --- Actions of the guest */

void side_write_register(struct side *s)
{
	static const uint32_t regs[] = {PV_REG_DSRLOW, PV_REG_DSRHIGH, PV_REG_CTL, PV_REG_REQUEST,
					PV_REG_IMR,    PV_REG_ICR,     0x28,       0x3};
	const uint8_t choice = script_get8(s->in);

	/* The two that end all others come rarely. */
	if (choice % 16 == 15)
		pvrdma_reg_write(s->guest.dev, s->guest.now, PV_BAR_REG, PV_REG_DSRHIGH,
				 script_get8(s->in) % 2);
	else
		pvrdma_reg_write(s->guest.dev, s->guest.now, PV_BAR_REG,
				 regs[choice % 16 == 14 ? 2 : 3 + choice % 5],
				 script_get8(s->in) % 4);
}

void side_read_register(struct side *s)
{
	uint32_t value;

	pvrdma_reg_read(s->guest.dev, script_get8(s->in) % 4, script_get8(s->in) % 64, &value);
}

void side_ring_doorbell(struct side *s)
{
	const uint8_t choice = script_get8(s->in);
	const uint32_t page = choice % 16 ? 0 : script_get16(s->in);
	const uint32_t bits = (uint32_t)script_get8(s->in) >> 5 << 29;

	const uint32_t offset = (choice / 16) % 4 * 4;
	const uint32_t value = bits | script_get8(s->in) % OBJECTS;

	/* The hypervisor may send messages, too. */
	if (s->uar && page < PVRDMA_UAR_PAGES && offset < 12)
		guest_doorbell(&s->guest, page, offset, value);
	else
		pvrdma_reg_write(s->guest.dev, s->guest.now, PV_BAR_UAR, page * PV_PAGE + offset,
				 value);
}

static void fill_create_qp(struct side *s, struct pv_cmd_create_qp *c)
{
	static const uint8_t types[] = {PV_QPT_RC, PV_QPT_UD, PV_QPT_GSI, PV_QPT_RC};

	*c = (struct pv_cmd_create_qp){
		.pdir_dma = s->spare.dir,
		.pd_handle = s->guest.pd,
		.send_cq_handle = script_get8(s->in) % 3,
		.recv_cq_handle = script_get8(s->in) % 3,
		.max_send_wr = SIDE_WR,
		.max_recv_wr = SIDE_WR,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.total_chunks = 4,
		.send_chunks = 2,
		.qp_type = types[script_get8(s->in) % 4],
		.is_srq = script_get8(s->in) % 4 == 0,
	};
}

static void fill_modify_qp(struct side *s, struct pv_cmd_modify_qp *c)
{
	static const uint32_t masks[] = {
		URXE_QP_STATE,
		URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS,
		URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN | URXE_QP_RQ_PSN |
			URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER,
		URXE_QP_STATE | URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
			URXE_QP_SQ_PSN | URXE_QP_MAX_QP_RD_ATOMIC,
	};
	const struct side *peer = s->peer;
	const uint8_t target = script_get8(s->in) % OBJECTS;
	struct urxe_gid gid;

	guest_gid(&peer->guest, &gid);
	*c = (struct pv_cmd_modify_qp){
		.qp_handle = target,
		.attr_mask = masks[script_get8(s->in) % 4],
		.attrs = {.qp_state = script_get8(s->in) % URXE_QPS_COUNT,
			  .path_mtu = 1 + script_get8(s->in) % 5,
			  .dest_qp_num = peer->qps[target % 2].qpn,
			  .rq_psn = 100,
			  .sq_psn = 100,
			  .max_rd_atomic = 4,
			  .max_dest_rd_atomic = 4,
			  .port_num = 1,
			  .timeout = 10,
			  .retry_cnt = 3,
			  .rnr_retry = 3,
			  .qp_access_flags = SIDE_ACCESS,
			  .ah_attr = {.ah_flags = 1, .hop_limit = 1}},
	};
	memcpy(c->attrs.ah_attr.dgid, gid.raw, sizeof(gid.raw));
	memcpy(c->attrs.ah_attr.dmac, peer->guest.mac, sizeof(peer->guest.mac));
}

static void fill_request(struct side *s, uint32_t cmd, union pv_request *r)
{
	struct urxe_gid gid;

	switch (cmd) {
	case PV_CMD_CREATE_MR:
		r->create_mr = (struct pv_cmd_create_mr){.start = SIDE_VA,
							 .length = SIDE_LENGTH,
							 .pdir_dma = s->buffer.pages.dir,
							 .pd_handle = s->guest.pd,
							 .access_flags = SIDE_ACCESS,
							 .flags = script_get8(s->in) % 4,
							 .nchunks = s->buffer.pages.n};
		break;
	case PV_CMD_CREATE_CQ:
		r->create_cq = (struct pv_cmd_create_cq){
			.pdir_dma = s->spare.dir, .cqe = SIDE_CQE, .nchunks = s->spare.n};
		break;
	case PV_CMD_CREATE_SRQ:
		r->create_srq =
			(struct pv_cmd_create_srq){.pdir_dma = s->spare.dir,
						   .pd_handle = s->guest.pd,
						   .nchunks = s->spare.n,
						   .attrs = {.max_wr = SIDE_WR, .max_sge = 2}};
		break;
	case PV_CMD_CREATE_QP: fill_create_qp(s, &r->create_qp); break;
	case PV_CMD_MODIFY_QP: fill_modify_qp(s, &r->modify_qp); break;
	case PV_CMD_CREATE_UC: r->create_uc.pfn64 = GUEST_UAR_PFN + script_get8(s->in); break;
	case PV_CMD_CREATE_BIND:
		guest_gid(&s->guest, &gid);
		r->create_bind = (struct pv_cmd_create_bind){
			.vlan = PV_NO_VLAN,
			.index = script_get8(s->in) % 3,
			.gid_type = PV_GID_TYPE_ROCE_V2,
		};
		memcpy(r->create_bind.new_gid, gid.raw, sizeof(gid.raw));
		break;
	case PV_CMD_MODIFY_SRQ:
		r->modify_srq = (struct pv_cmd_modify_srq){.attr_mask = PV_SRQ_LIMIT,
							   .attrs.srq_limit = script_get8(s->in)};
		break;
	default: r->handle.handle = script_get8(s->in) % OBJECTS; break;
	}
}

void side_send_command(struct side *s)
{
	const uint8_t choice = script_get8(s->in);
	/* Changes of QPs are the most interesting. */
	const uint32_t cmd = choice & 0x80 ? PV_CMD_MODIFY_QP : choice % (PV_CMDS + 2);
	union pv_request request = {0};

	fill_request(s, cmd, &request);
	if (script_get8(s->in) % 2)
		side_patch(s, &request, sizeof(request));
	request.hdr.cmd = cmd;
	memcpy(guest_at(&s->guest, s->guest.request), &request, sizeof(request));
	pvrdma_reg_write(s->guest.dev, s->guest.now, PV_BAR_REG, PV_REG_REQUEST, 0);
}

/* A physical address, for the key of all memory: near the ends of regions, or in a page. */
static uint64_t physical(struct side *s)
{
	const struct guest *g = &s->guest;
	const uint64_t ends[] = {0,           g->low_size,
				 GUEST_HIGH,  GUEST_HIGH + g->high_size,
				 GUEST_EXTRA, GUEST_EXTRA + g->extra_size};
	const uint8_t choice = script_get8(s->in);

	if (choice < 128)
		return ends[choice % 6] + script_get8(s->in) * 8u - 1024;
	return s->buffer.pages.addr[choice % s->buffer.pages.n] + script_get16(s->in) % PV_PAGE;
}

/* Region and address of the peer's memory. */
static void fill_remote(struct side *s, struct pvrdma_sq_wqe_hdr *h)
{
	const struct side *peer = s->peer;
	const uint32_t keys[] = {peer->buffer.key, peer->dma_key, peer->fast_key, peer->buffer.key};

	h->wr.rdma.rkey = keys[script_get8(s->in) % 4];
	h->wr.rdma.remote_addr = h->wr.rdma.rkey == peer->dma_key
					 ? physical(s->peer)
					 : SIDE_VA + script_get16(s->in) % SIDE_LENGTH;
}

static void fill_target(struct side *s, struct pvrdma_sq_wqe_hdr *h)
{
	const struct side *peer = s->peer;
	const uint32_t keys[] = {peer->buffer.key, peer->dma_key, peer->fast_key, peer->buffer.key};

	switch (h->opcode) {
	case PVRDMA_WR_ATOMIC_CMP_AND_SWP:
	case PVRDMA_WR_ATOMIC_FETCH_AND_ADD:
		h->wr.atomic.remote_addr = SIDE_VA + script_get8(s->in) * 8u;
		h->wr.atomic.rkey = keys[script_get8(s->in) % 4];
		break;
	case PVRDMA_WR_FAST_REG_MR:
		h->wr.fast_reg.iova_start = SIDE_VA;
		h->wr.fast_reg.pl_pdir_dma = s->spare.dir;
		h->wr.fast_reg.page_shift = 12;
		h->wr.fast_reg.page_list_len = 2;
		h->wr.fast_reg.length = SIDE_LENGTH;
		h->wr.fast_reg.access_flags = SIDE_ACCESS;
		h->wr.fast_reg.rkey = s->fast_key;
		break;
	case PVRDMA_WR_LOCAL_INV: h->ex.invalidate_rkey = s->fast_key; break;
	case PVRDMA_WR_SEND_WITH_INV: h->ex.invalidate_rkey = peer->fast_key; break;
	default: fill_remote(s, h); break;
	}
}

void side_post_request(struct side *s)
{
	const struct side *peer = s->peer;
	struct qp *qp = &s->qps[script_get8(s->in) % SIDE_QPS];
	struct pvrdma_sq_wqe_hdr header = {
		.wr_id = 1,
		.num_sge = 1,
		.opcode = script_get8(s->in) % (PVRDMA_WR_FAST_REG_MR + 2),
		.send_flags = script_get8(s->in) % 16,
	};
	struct pvrdma_sge sges[SLOT_SGES] = {
		buffer_sge(&s->buffer, 0, script_get16(s->in) % SIDE_LENGTH),
		buffer_sge(&s->buffer, 8, 8)};

	if (qp->type == PV_QPT_UD) {
		header.opcode = PVRDMA_WR_SEND + header.opcode % 2;
		header.wr.ud.remote_qpn = peer->qps[2].qpn;
		header.wr.ud.remote_qkey = GUEST_QKEY;
		qp_av(&s->guest, script_get8(s->in) % 4 ? &peer->guest : &s->guest,
		      &header.wr.ud.av);
		sges[0].length %= 1024;
	} else {
		fill_target(s, &header);
	}
	if (header.opcode == PVRDMA_WR_FAST_REG_MR || header.opcode == PVRDMA_WR_LOCAL_INV)
		header.num_sge = 0;
	if (header.opcode == PVRDMA_WR_ATOMIC_CMP_AND_SWP ||
	    header.opcode == PVRDMA_WR_ATOMIC_FETCH_AND_ADD)
		sges[0].length = 8;
	if (script_get8(s->in) % 8 == 0)
		sges[0] = (struct pvrdma_sge){physical(s), sges[0].length, s->dma_key};
	if (script_get8(s->in) % 4 == 0)
		side_patch(s, &header, sizeof(header));
	if (script_get8(s->in) % 4 == 0)
		side_patch(s, sges, 2 * sizeof(sges[0]));
	/* The driver's library checks indices; a guest that wrote garbage there goes on without. */
	if (qp_state_page(&s->guest, qp)->tx.prod_tail < 2 * SIDE_WR)
		qp_write_send(&s->guest, qp, &header, sges);
	pvrdma_reg_write(s->guest.dev, s->guest.now, PV_BAR_UAR, 0, qp->handle | PV_UAR_QP_SEND);
}

static bool has_room(const struct pv_ring_indices *ring)
{
	return ring->prod_tail < 2 * SIDE_WR && ring->prod_tail != (ring->cons_head ^ SIDE_WR);
}

void side_post_receive(struct side *s)
{
	struct qp *qp = &s->qps[script_get8(s->in) % SIDE_QPS];
	const struct pvrdma_sge sge =
		buffer_sge(&s->buffer, script_get8(s->in), script_get16(s->in) % SIDE_LENGTH);
	const struct pv_ring_state *srq = guest_at(&s->guest, s->srq.pages.addr[0]);

	if (qp != &s->qps[1] && has_room(&qp_state_page(&s->guest, qp)->rx))
		qp_post_recv(&s->guest, qp, 2, &sge, script_get8(s->in) % 3 ? 1 : 0);
	else if (qp == &s->qps[1] && has_room(&srq->rx))
		srq_post(&s->guest, &s->srq, 3, &sge, 1);
}

void side_scribble(struct side *s)
{
	const uint64_t pages[] = {
		s->cq.pages.addr[0],
		s->cq.pages.addr[1],
		s->cq.pages.dir,
		s->qps[0].pages.addr[0],
		s->qps[0].pages.addr[1],
		s->qps[1].pages.addr[0],
		s->qps[2].pages.addr[0],
		s->srq.pages.addr[0],
		s->srq.pages.addr[1],
		s->buffer.pages.dir,
		s->spare.dir,
		s->guest.async.addr[0],
		s->guest.cq_notify.addr[0],
		s->guest.dsr,
		s->guest.request,
		s->guest.response,
	};
	const uint8_t choice = script_get8(s->in);
	uint64_t page = pages[choice % 16];
	const uint64_t value = side_value(s);
	uint64_t offset = script_get8(s->in) * 4u;

	/* The tables behind a directory. */
	if (page == s->spare.dir || page == s->buffer.pages.dir) {
		uint64_t table = *(uint64_t *)guest_at(&s->guest, page);

		if (choice & 0x80 && !(table % PV_PAGE) && table < GUEST_SMALL)
			page = table;
	}
	if (choice & 0x40)
		offset %= 16;
	memcpy((uint8_t *)guest_at(&s->guest, page) + offset, &value, offset % 8 ? 4 : 8);
}

void side_consume_completions(struct side *s)
{
	struct pv_ring_indices *ring = cq_indices(&s->guest, &s->cq);
	struct pv_ring_state *events = guest_at(&s->guest, s->guest.async.addr[0]);

	ring->cons_head = ring->prod_tail;
	events->rx.cons_head = events->rx.prod_tail;
}

static void add_extra(struct guest *g)
{
	if (vnic_guest_memory_map(g->memory, GUEST_EXTRA, g->extra_size, g->fd,
				  GUEST_LOW_SIZE + GUEST_HIGH_SIZE, true) == 0)
		pvrdma_memory_added(g->dev);
}

/*
 * Shortens the file within the extra region, and posts a request with a payload there: of the
 * side's memory to the peer's, or the other way.
 */
static void lose_extra(struct side *s, uint64_t left)
{
	struct qp *qp = &s->qps[script_get8(s->in) % SIDE_RC];
	const uint8_t choice = script_get8(s->in);
	struct pvrdma_sq_wqe_hdr header = {
		.num_sge = 1,
		.opcode = choice & 1 ? PVRDMA_WR_RDMA_READ : PVRDMA_WR_RDMA_WRITE,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = SIDE_VA, .rkey = s->peer->buffer.key},
	};
	const struct pvrdma_sge sge = {GUEST_EXTRA + script_get16(s->in) % (8 * PV_PAGE),
				       1 + script_get16(s->in) % SIDE_LENGTH, s->dma_key};

	if (s->guest.keep_extra)
		return;
	add_extra(&s->guest);
	require(!ftruncate(s->guest.fd, (off_t)(GUEST_LOW_SIZE + GUEST_HIGH_SIZE + left)));
	if (qp_state_page(&s->guest, qp)->tx.prod_tail < 2 * SIDE_WR)
		qp_write_send(&s->guest, qp, &header, &sge);
	pvrdma_reg_write(s->guest.dev, s->guest.now, PV_BAR_UAR, 0, qp->handle | PV_UAR_QP_SEND);
	side_run(s);
}

void side_change_memory(struct side *s)
{
	struct guest *g = &s->guest;
	const uint8_t choice = script_get8(s->in);
	const uint64_t page = script_get8(s->in) % (GUEST_SMALL / PV_PAGE) * (uint64_t)PV_PAGE;
	uint64_t addr = page, size = PV_PAGE * (1u + script_get8(s->in) % 8);

	if (choice % 4 == 0 && !vnic_guest_memory_range(g->memory, GUEST_EXTRA, 1, false)) {
		add_extra(g);
		return;
	}
	if (choice % 4 == 3 && choice & 0x80) {
		lose_extra(s, size - PV_PAGE);
		return;
	}
	addr += choice % 4 == 1 ? GUEST_HIGH : choice % 4 == 2 ? 0 : GUEST_EXTRA;
	/* Most of the time the memory stays. */
	if (choice & 0x70 && choice % 4 != 3)
		return;
	pvrdma_memory_removed(g->dev, addr, size);
	vnic_guest_memory_unmap(g->memory, addr, size);
}

void side_check_memory(struct side *s)
{
	struct guest *g = &s->guest;
	uint64_t addr, size;

	while (vnic_guest_memory_find_lost(g->memory, &addr, &size)) {
		require(addr >= GUEST_EXTRA && addr + size <= GUEST_EXTRA + g->extra_size);
		pvrdma_memory_removed(g->dev, addr, size);
		vnic_guest_memory_forget(g->memory, addr, size);
	}
}

void side_change_link(struct side *s)
{
	const uint8_t choice = script_get8(s->in);

	if (choice % 4 == 2)
		pvrdma_set_bus_master(s->guest.dev, choice & 4);
	else
		pvrdma_set_link(s->guest.dev, choice % 2);
}

/* --- Time and frames */

static void deliver(struct side *to, struct urxe_frame *frame)
{
	const uint8_t choice = script_get8(to->in);

	if (choice == 0xff)
		return;
	if (choice == 0xfe && frame->len > 60)
		frame->data[14 + script_get8(to->in) % (frame->len - 14)] ^= 1;
	pvrdma_wants(to->guest.dev, frame->data, frame->len);
	pvrdma_input(to->guest.dev, to->guest.now, frame, 1);
}

static uint32_t move_frames(struct side *from)
{
	static uint8_t bytes[BURST][ROOM];
	struct urxe_frame frames[BURST];
	uint32_t n;

	for (unsigned i = 0; i < BURST; i++)
		frames[i] = (struct urxe_frame){.data = bytes[i], .room = ROOM};
	n = pvrdma_output(from->guest.dev, from->guest.now, frames, BURST);
	require(n <= BURST);
	for (uint32_t i = 0; i < n; i++) {
		require(frames[i].len >= 14 && frames[i].len <= frames[i].room);
		deliver(from->peer, &frames[i]);
	}
	pvrdma_flush(from->guest.dev);
	return n;
}

void side_run(struct side *s)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t n = move_frames(s);

		if (s->peer != s)
			n += move_frames(s->peer);
		if (!n)
			break;
	}
}

static uint64_t next_deadline(const struct side *s)
{
	const uint64_t own = pvrdma_next_deadline(s->guest.dev);
	const uint64_t peers = pvrdma_next_deadline(s->peer->guest.dev);

	return own < peers ? own : peers;
}

void side_pass_time(struct side *s)
{
	uint64_t next = next_deadline(s);

	if (next == URXE_NEVER || next < s->guest.now)
		next = s->guest.now + 1000;
	s->guest.now = s->peer->guest.now = next;
	side_run(s);
}

void side_finish(struct side *s)
{
	side_restart(s);
	side_connect(s);
	side_check_write(s);
	side_close(s);
}
