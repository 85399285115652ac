/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages between two guests of one host, whose payloads go from memory to memory: SENDs that the
 * receiver copies, and WRITEs and READs of the requester, from and to regions of pages and the
 * region of all memory.
 */
#include "pair.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define LENGTH 40002u
#define LARGE  0x20000u
#define DMA_AT (GUEST_LOW_SIZE - 0x100000u) /* memory that no page list has */
#define FRAMES 32

/* What a guest's device process does for it; both guests are in this process. */
struct side {
	struct pvrdma_owner owner;
	struct side *peer;
	struct urxe_copy_table *table;
	uint32_t copies; /* WRITEs and READs by this side */
	uint32_t pulls;  /* payloads of SENDs that this side has copied */
};

struct world {
	struct pair p;
	struct side side[2];
	struct urxe_frame held[FRAMES];
	uint32_t n_held;
};

static const struct urxe_copy_table *peer_table(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)mac, (void)qpn;
	return ((struct side *)ctx)->peer->table;
}

static bool copy_part(const struct urxe_copy_part *part, bool write)
{
	struct iovec local[URXE_COPY_EXTENTS], remote[URXE_COPY_EXTENTS];
	ssize_t length = 0;

	for (uint32_t i = 0; i < part->n_local; i++) {
		local[i] = (struct iovec){part->local[i].addr, part->local[i].length};
		length += (ssize_t)part->local[i].length;
	}
	for (uint32_t i = 0; i < part->n_remote; i++)
		remote[i] = (struct iovec){(void *)(uintptr_t)part->remote[i].addr,
					   part->remote[i].length};
	return (write ? process_vm_writev : process_vm_readv)(getpid(), local, part->n_local,
							      remote, part->n_remote, 0) == length;
}

static uint32_t copy(void *ctx, const struct urxe_copy_job *job)
{
	struct side *side = ctx;
	uint32_t n = 0;

	if (side->peer->table->state.word != job->state)
		return 0;
	while (n < job->n_parts && copy_part(&job->parts[n], job->write))
		n++;
	side->copies += n;
	return n;
}

static bool polls_or_wake(void *ctx, uint64_t now)
{
	(void)ctx, (void)now;
	return false;
}

static void withdrawn(void *ctx)
{
	(void)ctx;
}

static bool settled(void *ctx)
{
	(void)ctx;
	return true;
}

static bool may_reference(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)ctx, (void)mac, (void)qpn;
	return true;
}

static bool pull(void *ctx, const struct urxe_reference *reference, const struct urxe_extent *to,
		 uint32_t n)
{
	struct iovec local[URXE_REFERENCE_PIECES], remote[URXE_REFERENCE_PIECES];
	struct urxe_reference_piece piece = {reference->address, reference->length};
	struct side *side = ctx;
	uint32_t n_remote = reference->n_pieces ? reference->n_pieces : 1;

	for (uint32_t i = 0; i < n_remote; i++) {
		if (reference->n_pieces)
			memcpy(&piece, reference->pieces + i * sizeof(piece), sizeof(piece));
		remote[i] = (struct iovec){(void *)(uintptr_t)piece.address, piece.length};
	}
	for (uint32_t i = 0; i < n; i++)
		local[i] = (struct iovec){to[i].addr, to[i].length};
	if (process_vm_readv(getpid(), local, n, remote, n_remote, 0) != (ssize_t)reference->length)
		return false;
	side->pulls++;
	return side->peer->table->references == reference->generation;
}

/* The device chooses its numbers itself. */
static uint32_t take_qpn(void *ctx)
{
	(void)ctx;
	return 0;
}

static void connecting(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)ctx, (void)mac, (void)qpn;
}

static const struct urxe_copy_ops copy_ops = {
	.table = peer_table,
	.copy = copy,
	.polls_or_wake = polls_or_wake,
	.withdrawn = withdrawn,
	.settled = settled,
};

static void open_sides(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		struct side *side = &w->side[i];

		side->peer = &w->side[!i];
		side->table = aligned_alloc(64, sizeof(*side->table));
		assert_non_null(side->table);
		memset(side->table, 0, sizeof(*side->table));
		side->owner = (struct pvrdma_owner){
			.take_qpn = take_qpn,
			.connecting = connecting,
			.may_reference = may_reference,
			.pull = pull,
			.ctx = side,
			.copy_ops = &copy_ops,
			.copy_ctx = side,
			.table = side->table,
		};
	}
}

static int open_world(void **state)
{
	const struct pair_attr attr = {.type = PV_QPT_RC, .net = URXE_NET_IPV4};
	static struct world w;

	w = (struct world){0};
	open_sides(&w);
	for (uint8_t i = 0; i < 2; i++) {
		guest_open(&w.p.guest[i],
			   &(struct guest_attr){.id = (uint8_t)(i + 1), .owner = &w.side[i].owner});
		guest_start(&w.p.guest[i]);
		w.p.net.guest[i] = &w.p.guest[i];
	}
	pair_open_queues(&w.p, &attr);
	*state = &w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	pair_close(&w->p);
	for (int i = 0; i < 2; i++)
		free(w->side[i].table);
	return 0;
}

static uint64_t event(const struct world *w, int side, enum urxe_event event)
{
	return pvrdma_engine_counters(w->p.guest[side].dev)->event[event];
}

static uint64_t unreadable(const struct world *w)
{
	return pvrdma_engine_counters(w->p.guest[1].dev)->drop[URXE_DROP_UNREADABLE];
}

static void receive(struct world *w, uint64_t offset, uint32_t length)
{
	const struct pvrdma_sge sge = buffer_sge(&w->p.buffer[1], offset, length);

	qp_post_recv(&w->p.guest[1], &w->p.qp[1], 7, &sge, 1);
}

static void post_send(struct world *w, uint32_t opcode, const struct pvrdma_sge *sge)
{
	const struct pvrdma_sq_wqe_hdr header = {.wr_id = 1,
						 .num_sge = 1,
						 .opcode = opcode,
						 .send_flags = URXE_SEND_SIGNALED,
						 .ex.imm_data = 0x12345678};

	qp_post_send(&w->p.guest[0], &w->p.qp[0], &header, sge);
}

static void post(struct world *w, uint64_t offset, uint32_t length)
{
	const struct pvrdma_sge sge = buffer_sge(&w->p.buffer[0], offset, length);

	post_send(w, PVRDMA_WR_SEND, &sge);
}

static struct pvrdma_cqe expect_arrival(struct world *w, uint32_t length)
{
	struct pvrdma_cqe cqe;

	net_run(&w->p.net);
	expect_cqe(&w->p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_SEND);
	cqe = expect_cqe(&w->p, 1, 7, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
	assert_int_equal(cqe.byte_len, length);
	return cqe;
}

/* No page of one guest lies beside the page before it, so each payload has many pieces. */
static void test_large_sends_are_copied(void **state)
{
	static const struct {
		uint32_t from, to, length;
	} rows[] = {{0, 0, URXE_REFERENCE_MIN},
		    {1, 4095, URXE_REFERENCE_MIN + 1},
		    {100, 3, LENGTH},
		    {4095, 4096, LARGE}};
	struct world *w = *state;

	for (uint32_t i = 0; i < 4; i++) {
		const uint64_t moved = w->p.net.moved;

		buffer_fill(&w->p.guest[0], &w->p.buffer[0], rows[i].from, rows[i].length,
			    (uint8_t)i);
		receive(w, rows[i].to, rows[i].length);
		post(w, rows[i].from, rows[i].length);
		expect_arrival(w, rows[i].length);
		assert_true(buffer_has(&w->p.guest[1], &w->p.buffer[1], rows[i].to, rows[i].length,
				       (uint8_t)i));
		assert_int_equal(w->side[1].pulls, i + 1);
		assert_int_equal(w->p.net.moved - moved, 2); /* and the ACK */
	}
	assert_int_equal(event(w, 0, URXE_EVENT_REFERENCES), 4);
	assert_int_equal(event(w, 1, URXE_EVENT_PULLED_BYTES),
			 event(w, 0, URXE_EVENT_REFERENCE_BYTES));
}

static void test_short_sends_go_in_packets(void **state)
{
	struct world *w = *state;

	buffer_fill(&w->p.guest[0], &w->p.buffer[0], 0, 4096, 9);
	receive(w, 0, 4096);
	post(w, 0, 4096);
	expect_arrival(w, 4096);
	assert_true(buffer_has(&w->p.guest[1], &w->p.buffer[1], 0, 4096, 9));
	assert_int_equal(w->side[1].pulls, 0);
}

static void test_immediate_data_arrives(void **state)
{
	struct pvrdma_sge sge;
	struct world *w = *state;
	struct pvrdma_cqe cqe;

	receive(w, 0, LENGTH);
	sge = buffer_sge(&w->p.buffer[0], 0, LENGTH);
	post_send(w, PVRDMA_WR_SEND_WITH_IMM, &sge);
	cqe = expect_arrival(w, LENGTH);
	assert_int_equal(cqe.imm_data, 0x12345678);
	assert_int_equal(w->side[1].pulls, 1);
}

static void test_send_longer_than_its_receive_is_not_pulled(void **state)
{
	struct world *w = *state;

	receive(w, 0, LENGTH - 1);
	post(w, 0, LENGTH);
	net_run(&w->p.net);
	expect_cqe(&w->p, 1, 7, PVRDMA_WC_LOC_LEN_ERR, 0);
	expect_cqe(&w->p, 0, 1, PVRDMA_WC_REM_INV_REQ_ERR, 0);
	assert_int_equal(w->side[1].pulls, 0);
}

/* The receive request comes from an SRQ; its buffer has segments of odd lengths. */
static void test_send_is_pulled_into_an_srq_receive(void **state)
{
	struct world *w = *state;
	struct pair *p = &w->p;
	struct pvrdma_sge to[2];
	struct srq srq;

	assert_int_equal(srq_try_open(&p->guest[1], &srq, 16, 2, 0), 0);
	for (int i = 0; i < 2; i++) {
		const struct qp_attr qp = {.type = PV_QPT_RC,
					   .send_cq = &p->cq[i],
					   .recv_cq = &p->cq[i],
					   .srq = i ? &srq : NULL};

		qp_close(&p->guest[i], &p->qp[i]);
		qp_open(&p->guest[i], &p->qp[i], &qp);
	}
	for (int i = 0; i < 2; i++)
		qp_connect(&p->guest[i], &p->qp[i], &p->guest[!i], &p->qp[!i]);
	to[0] = buffer_sge(&p->buffer[1], 5, 5001);
	to[1] = buffer_sge(&p->buffer[1], 5 + 5001, LENGTH);
	srq_post(&p->guest[1], &srq, 7, to, 2);
	buffer_fill(&p->guest[0], &p->buffer[0], 0, LENGTH, 8);
	post(w, 0, LENGTH);
	expect_arrival(w, LENGTH);
	assert_int_equal(w->side[1].pulls, 1);
	assert_true(buffer_has(&p->guest[1], &p->buffer[1], 5, LENGTH, 8));
	qp_close(&p->guest[1], &p->qp[1]);
	srq_close(&p->guest[1], &srq);
	qp_open(&p->guest[1], &p->qp[1],
		&(struct qp_attr){.type = PV_QPT_RC, .send_cq = &p->cq[1], .recv_cq = &p->cq[1]});
}

/* The sender hears of the receive request, and does not wait for the RNR timer. */
static void test_late_receive_gets_the_payload_without_rnr_timer(void **state)
{
	struct world *w = *state;

	buffer_fill(&w->p.guest[0], &w->p.buffer[0], 0, LENGTH, 4);
	post(w, 0, LENGTH);
	while (net_step(&w->p.net))
		;
	assert_int_equal(event(w, 1, URXE_EVENT_NAK_RNR_SENT), 1);
	receive(w, 0, LENGTH);
	while (net_step(&w->p.net))
		;
	assert_int_equal(w->side[1].pulls, 1);
	expect_arrival(w, LENGTH);
	assert_true(buffer_has(&w->p.guest[1], &w->p.buffer[1], 0, LENGTH, 4));
	assert_int_equal(event(w, 0, URXE_EVENT_REFERENCES), 2);
	assert_int_equal(w->side[1].pulls, 1);
}

/* --- Memory that the sender withdraws, while the frame is on its way. */

/* Takes guest 0's frames from its device. */
static void hold_frames(struct world *w)
{
	static uint8_t bytes[FRAMES][2048];

	for (int i = 0; i < FRAMES; i++)
		w->held[i] = (struct urxe_frame){.data = bytes[i], .room = sizeof(bytes[i])};
	w->n_held = pvrdma_output(w->p.guest[0].dev, w->p.guest[0].now, w->held, FRAMES);
	assert_int_equal(w->n_held, 1);
	assert_int_equal(w->held[0].reference.length, LENGTH);
	w->held[0].without_icrc = true;
	w->held[0].reference.sender = &w->p.guest[0];
	w->held[0].reference.pieces = w->held[0].data + w->held[0].len - URXE_ICRC_LEN;
}

static void expect_refusal(struct world *w)
{
	assert_int_equal(w->side[0].table->references, 1);
	pvrdma_input(w->p.guest[1].dev, w->p.guest[1].now, w->held, 1);
	assert_int_equal(unreadable(w), 1);
	net_run(&w->p.net);
	expect_no_cqe(&w->p, 1);
}

static void test_payload_of_a_deregistered_mr_is_not_pulled(void **state)
{
	struct world *w = *state;

	receive(w, 0, LENGTH);
	post(w, 0, LENGTH);
	hold_frames(w);
	buffer_close(&w->p.guest[0], &w->p.buffer[0]);
	expect_refusal(w);
	expect_cqe(&w->p, 0, 1, PVRDMA_WC_LOC_PROT_ERR, 0);
	buffer_open(&w->p.guest[0], &w->p.buffer[0], VA, BUFFER, ALL_ACCESS);
}

static void test_payload_of_a_destroyed_qp_is_not_pulled(void **state)
{
	struct world *w = *state;
	const struct qp_attr attr = {
		.type = PV_QPT_RC, .send_cq = &w->p.cq[0], .recv_cq = &w->p.cq[0]};

	receive(w, 0, LENGTH);
	post(w, 0, LENGTH);
	hold_frames(w);
	qp_close(&w->p.guest[0], &w->p.qp[0]);
	expect_refusal(w);
	qp_open(&w->p.guest[0], &w->p.qp[0], &attr);
}

/* The driver forbids the device to access memory: the peer drops what it reads. */
static void test_payload_is_unreadable_without_bus_mastering(void **state)
{
	struct world *w = *state;

	buffer_fill(&w->p.guest[0], &w->p.buffer[0], 0, LENGTH, 6);
	receive(w, 0, LENGTH);
	post(w, 0, LENGTH);
	hold_frames(w);
	pvrdma_set_bus_master(w->p.guest[0].dev, false);
	assert_int_equal(w->side[0].table->references, 1);
	pvrdma_input(w->p.guest[1].dev, w->p.guest[1].now, w->held, 1);
	assert_int_equal(unreadable(w), 1);
	expect_no_cqe(&w->p, 1);
	pvrdma_set_bus_master(w->p.guest[0].dev, true);
	expect_arrival(w, LENGTH);
	assert_true(buffer_has(&w->p.guest[1], &w->p.buffer[1], 0, LENGTH, 6));
}

static bool grants_something(const struct urxe_copy_table *table)
{
	for (uint32_t i = 0; i < URXE_COPY_GRANTS; i++)
		if (table->grants[i].key)
			return true;
	for (uint32_t i = 0; i < URXE_COPY_CHUNKS; i++)
		for (uint32_t j = 0; j < URXE_COPY_CHUNK; j++)
			if (table->qps[i][j].qpn)
				return true;
	return false;
}

/* Moves the second guest to a device with a table of its own. */
static void move_to_new_table(struct world *w)
{
	struct side *side = &w->side[1];
	struct urxe_copy_table *old = side->table;
	uint8_t *stream;
	size_t length;

	guest_save(&w->p.guest[1], &stream, &length);
	side->table = aligned_alloc(64, sizeof(*side->table));
	assert_non_null(side->table);
	memset(side->table, 0, sizeof(*side->table));
	side->owner.table = side->table;
	assert_int_equal(guest_restore(&w->p.guest[1], stream, length), 0);
	free(stream);
	free(old);
}

static void test_moved_device_grants_peers_as_the_driver_permits(void **state)
{
	struct world *w = *state;

	assert_true(grants_something(w->side[1].table));
	move_to_new_table(w);
	assert_true(grants_something(w->side[1].table));
	pvrdma_set_bus_master(w->p.guest[1].dev, false);
	assert_false(grants_something(w->side[1].table));
	move_to_new_table(w);
	assert_false(grants_something(w->side[1].table));
	pvrdma_set_bus_master(w->p.guest[1].dev, true);
	assert_false(grants_something(w->side[1].table));
}

/* --- The region of all memory. */

static uint32_t dma_key(struct world *w, int side)
{
	const struct pv_cmd_create_mr request = {.pd_handle = w->p.guest[side].pd,
						 .access_flags = ALL_ACCESS,
						 .flags = PV_MR_FLAG_DMA};
	uint32_t handle, key;

	assert_int_equal(mr_create(&w->p.guest[side], &request, &handle, &key), 0);
	return key;
}

static uint8_t *at(struct world *w, int side, uint64_t addr)
{
	return guest_at(&w->p.guest[side], addr);
}

static void fill(uint8_t *bytes, uint32_t n, uint8_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(seed + i * 7);
}

static void test_send_between_dma_regions_is_pulled(void **state)
{
	struct world *w = *state;
	const struct pvrdma_sge from = {DMA_AT + 1, LENGTH, dma_key(w, 0)},
				to = {DMA_AT + 4, LENGTH, dma_key(w, 1)};

	fill(at(w, 0, DMA_AT + 1), LENGTH, 3);
	qp_post_recv(&w->p.guest[1], &w->p.qp[1], 7, &to, 1);
	post_send(w, PVRDMA_WR_SEND, &from);
	expect_arrival(w, LENGTH);
	assert_int_equal(w->side[1].pulls, 1);
	assert_memory_equal(at(w, 1, DMA_AT + 4), at(w, 0, DMA_AT + 1), LENGTH);
}

static void transfer(struct world *w, uint32_t opcode, const struct pvrdma_sge *sge, uint64_t to,
		     uint32_t key, uint32_t status)
{
	const struct pvrdma_sq_wqe_hdr header = {
		.wr_id = 1,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = to, .rkey = key},
	};

	qp_post_send(&w->p.guest[0], &w->p.qp[0], &header, sge);
	net_run(&w->p.net);
	expect_cqe(&w->p, 0, 1, status,
		   opcode == PVRDMA_WR_RDMA_READ ? PVRDMA_WC_RDMA_READ : PVRDMA_WC_RDMA_WRITE);
}

/* The first request proves the connection in packets; the next ones are copies. */
static void test_writes_and_reads_of_dma_regions_are_copies(void **state)
{
	struct world *w = *state;
	const uint32_t key = dma_key(w, 1);
	const struct pvrdma_sge sge = {DMA_AT, LENGTH, dma_key(w, 0)}, few = {DMA_AT, 8, sge.lkey};

	transfer(w, PVRDMA_WR_RDMA_WRITE, &few, DMA_AT, key, PVRDMA_WC_SUCCESS);
	assert_int_equal(w->side[0].copies, 0);
	fill(at(w, 0, DMA_AT), LENGTH, 5);
	transfer(w, PVRDMA_WR_RDMA_WRITE, &sge, DMA_AT + 3, key, PVRDMA_WC_SUCCESS);
	assert_int_equal(w->side[0].copies, 1);
	assert_memory_equal(at(w, 1, DMA_AT + 3), at(w, 0, DMA_AT), LENGTH);
	fill(at(w, 1, GUEST_HIGH + 0x800000), LENGTH, 6);
	transfer(w, PVRDMA_WR_RDMA_READ, &sge, GUEST_HIGH + 0x800000, key, PVRDMA_WC_SUCCESS);
	assert_int_equal(w->side[0].copies, 2);
	assert_memory_equal(at(w, 0, DMA_AT), at(w, 1, GUEST_HIGH + 0x800000), LENGTH);
	/* Memory that the guest gets later. */
	guest_plug(&w->p.guest[1]);
	transfer(w, PVRDMA_WR_RDMA_WRITE, &sge, GUEST_EXTRA, key, PVRDMA_WC_SUCCESS);
	assert_int_equal(w->side[0].copies, 3);
	assert_memory_equal(at(w, 1, GUEST_EXTRA), at(w, 0, DMA_AT), LENGTH);
	/* Memory that the hypervisor takes back; the rest stays. */
	guest_unplug(&w->p.guest[1], GUEST_EXTRA, GUEST_EXTRA_SIZE);
	transfer(w, PVRDMA_WR_RDMA_WRITE, &few, DMA_AT + 3, key, PVRDMA_WC_SUCCESS);
	assert_int_equal(w->side[0].copies, 4);
	transfer(w, PVRDMA_WR_RDMA_WRITE, &few, GUEST_EXTRA, key, PVRDMA_WC_REM_ACCESS_ERR);
	assert_int_equal(w->side[0].copies, 4);
}

/* The last bytes before a hole, and the first of it. */
static void test_write_into_a_memory_hole_is_refused(void **state)
{
	struct world *w = *state;
	const uint32_t key = dma_key(w, 1);
	const struct pvrdma_sge few = {DMA_AT, 8, dma_key(w, 0)};

	transfer(w, PVRDMA_WR_RDMA_WRITE, &few, DMA_AT, key, PVRDMA_WC_SUCCESS);
	transfer(w, PVRDMA_WR_RDMA_WRITE, &few, GUEST_LOW_SIZE - 8, key, PVRDMA_WC_SUCCESS);
	assert_int_equal(w->side[0].copies, 1);
	transfer(w, PVRDMA_WR_RDMA_WRITE, &few, GUEST_LOW_SIZE - 4, key, PVRDMA_WC_REM_ACCESS_ERR);
	assert_int_equal(w->side[0].copies, 1);
}

/* DMA_UNMAP of the payload while the frame is on its way. */
static void test_payload_in_unmapped_memory_is_not_pulled(void **state)
{
	struct world *w = *state;
	struct pvrdma_sge from = {GUEST_EXTRA, LENGTH, 0};

	guest_plug(&w->p.guest[0]);
	from.lkey = dma_key(w, 0);
	receive(w, 0, LENGTH);
	post_send(w, PVRDMA_WR_SEND, &from);
	hold_frames(w);
	guest_unplug(&w->p.guest[0], GUEST_EXTRA, GUEST_EXTRA_SIZE);
	expect_refusal(w);
	expect_cqe(&w->p, 0, 1, PVRDMA_WC_LOC_PROT_ERR, 0);
}

/* DMA_UNMAP of the receive buffer: packets report the error. */
static void test_unmapped_receive_buffer_gets_local_protection_error(void **state)
{
	struct world *w = *state;
	struct pvrdma_sge to = {GUEST_EXTRA, LENGTH, 0};

	guest_plug(&w->p.guest[1]);
	to.lkey = dma_key(w, 1);
	qp_post_recv(&w->p.guest[1], &w->p.qp[1], 7, &to, 1);
	post(w, 0, LENGTH);
	hold_frames(w);
	guest_unplug(&w->p.guest[1], GUEST_EXTRA, GUEST_EXTRA_SIZE);
	pvrdma_input(w->p.guest[1].dev, w->p.guest[1].now, w->held, 1);
	net_run(&w->p.net);
	expect_cqe(&w->p, 1, 7, PVRDMA_WC_LOC_PROT_ERR, 0);
	expect_cqe(&w->p, 0, 1, PVRDMA_WC_REM_OP_ERR, 0);
	assert_int_equal(w->side[1].pulls, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
	const struct CMUnitTest tests[] = {
		TEST(test_large_sends_are_copied),
		TEST(test_short_sends_go_in_packets),
		TEST(test_immediate_data_arrives),
		TEST(test_send_longer_than_its_receive_is_not_pulled),
		TEST(test_send_is_pulled_into_an_srq_receive),
		TEST(test_late_receive_gets_the_payload_without_rnr_timer),
		TEST(test_payload_of_a_deregistered_mr_is_not_pulled),
		TEST(test_payload_of_a_destroyed_qp_is_not_pulled),
		TEST(test_payload_is_unreadable_without_bus_mastering),
		TEST(test_moved_device_grants_peers_as_the_driver_permits),
		TEST(test_send_between_dma_regions_is_pulled),
		TEST(test_writes_and_reads_of_dma_regions_are_copies),
		TEST(test_write_into_a_memory_hole_is_refused),
		TEST(test_payload_in_unmapped_memory_is_not_pulled),
		TEST(test_unmapped_receive_buffer_gets_local_protection_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
