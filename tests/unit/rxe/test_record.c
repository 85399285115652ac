/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recordings of a device: a replay does what the device did, in every scene and after every kind of
 * call; it finds each difference, and reads any part of a recording.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include <rxe/offload.h>
#include <rxe/packet.h>
#include <rxe/record.h>

#include "engine.h"
#include "move.h"
#include "require.h"
#include "scene.h"

#define RECORDING_ROOM (64u << 20)
#define MS             1000000ull

struct recorded_bytes {
	uint8_t *bytes;
	size_t n, room;
};

static bool write_recording(void *arg, const uint8_t *bytes, size_t n)
{
	struct recorded_bytes *recording = arg;

	if (recording->n + n + (n == URXE_RECORD_END ? 0 : URXE_RECORD_END) > recording->room)
		return false;
	memcpy(recording->bytes + recording->n, bytes, n);
	recording->n += n;
	return true;
}

static void open_recording(struct recorded_bytes *recording, size_t room)
{
	*recording = (struct recorded_bytes){.bytes = malloc(room), .room = room};
	assert_non_null(recording->bytes);
}

static void start(struct pair *pair, unsigned side, struct recorded_bytes *recording, bool whole)
{
	const struct urxe_recorder recorder = {
		.arg = recording, .write = write_recording, .whole_frames = whole};

	assert_int_equal(urxe_record_start(pair->node[side]->dev, pair->now, &recorder), 0);
	assert_true(urxe_recording(pair->node[side]->dev));
}

/* The device goes on, as after an abandoned migration. */
static void save(struct pair *pair, unsigned side)
{
	uint8_t *stream;
	size_t length;

	move_save(pair->node[side], pair->now, &stream, &length);
	urxe_state_free(stream);
}

static void replay_same(const struct recorded_bytes *recording)
{
	struct urxe_replay replay = {0};

	assert_int_equal(urxe_replay(&replay, recording->bytes, recording->n), 0);
	assert_true(replay.has_end && !replay.lost);
	assert_true(replay.calls > 0);
}

/* --- Calls of every kind. */

/* Only a durable node has such regions. */
static void try_persistent_region(struct node *node)
{
	struct urxe_extent all = {node->mem, 4096};
	const struct urxe_mr_attr attr = {.pd = NODE_PD,
					  .access = NODE_ACCESS | URXE_ACCESS_FLUSH_PERSISTENT,
					  .length = 4096,
					  .extents = &all,
					  .n_extents = 1};
	struct urxe_mr *mr;

	if (!urxe_mr_reg(node->dev, &attr, &mr))
		assert_int_equal(urxe_mr_dereg(mr), 0);
}

static void change_regions(struct node *node)
{
	struct urxe_mr *mr;
	const struct urxe_extent bytes = {node->mem + 4096, 4096};
	struct urxe_extent all = {node->mem, 4096};
	const struct urxe_mr_attr attr = {.pd = NODE_PD,
					  .access = NODE_ACCESS,
					  .length = 4096,
					  .extents = &all,
					  .n_extents = 1};
	const struct urxe_mw_attr window = {.pd = NODE_PD, .type = URXE_MW_TYPE_1};
	struct urxe_fast_mr *fast;
	struct urxe_mw *mw;

	try_persistent_region(node);
	mr = node_reg(node, NODE_PD, NODE_ACCESS, 4096, 8192);
	assert_int_equal(urxe_mr_unmap(mr, &bytes), 0);
	urxe_mr_unmapped(mr, &bytes, false);
	assert_int_equal(urxe_mr_unmap(mr, &bytes), 0);
	urxe_mr_unmapped(mr, &bytes, true);
	assert_int_equal(urxe_mr_rereg(&mr, &attr), 0);
	urxe_mr_unmap_all(mr);
	assert_int_equal(urxe_mw_alloc(node->dev, &window, &mw), 0);
	urxe_mw_dealloc(mw);
	assert_int_equal(urxe_fast_mr_alloc(node->dev, NODE_PD, 4, &fast), 0);
	assert_int_equal(urxe_fast_mr_free(fast), 0);
	assert_int_equal(urxe_mr_dereg(mr), 0);
}

static void change_device(struct node *node)
{
	const struct urxe_gid gid = {{0xfe, 0x80, 9}};

	assert_int_equal(urxe_gid_set(node->dev, 9, &gid, false), 0);
	assert_int_equal(urxe_gid_set_vlan(node->dev, 9, 5), 0);
	assert_int_equal(urxe_gid_set(node->dev, 9, NULL, false), 0);
	assert_int_equal(urxe_pkey_set(node->dev, 3, 0x8123), 0);
	urxe_dev_set_gso(node->dev, true);
	urxe_dev_set_gso(node->dev, false);
	assert_int_equal(urxe_link_mtu_set(node->dev, 4200), 0);
}

static void change_queues(struct node *node, struct node_queue *queue)
{
	const struct urxe_rq_attr attr = {.ctx = queue, .pd = NODE_PD, .max_wr = 8, .max_sge = 1};
	const struct urxe_seg seg = node_seg(node, 0, 100);
	const struct urxe_recv_wr wr = {.wr_id = 5, .n_segs = 1, .segs = &seg};
	struct urxe_cq *cq;
	struct urxe_rq *srq;

	assert_int_equal(urxe_cq_create(node->dev, &cq, &cq), 0);
	urxe_cq_arm(cq, false);
	assert_int_equal(urxe_srq_create(node->dev, &attr, &srq), 0);
	assert_int_equal(urxe_post_recv(srq, &wr), 0);
	assert_int_equal(urxe_srq_set_limit(srq, 1), 0);
	assert_int_equal(urxe_srq_resize(srq, 16), 0);
	assert_int_equal(urxe_srq_destroy(srq), 0);
	assert_int_equal(urxe_cq_destroy(cq), 0);
}

/* A new connection, whose QPs are made, used, changed and destroyed while the device is recorded.
 */
static void use_new_connection(struct pair *pair)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint end[2];
	const struct urxe_seg seg = node_seg(pair->node[0], 0, 5000);
	const struct urxe_send_wr send = {.wr_id = 1,
					  .opcode = URXE_WR_SEND,
					  .flags = URXE_SEND_SIGNALED,
					  .n_segs = 1,
					  .segs = &seg};
	const struct urxe_seg to = node_seg(pair->node[1], 0, 8000);
	const struct urxe_recv_wr recv = {.wr_id = 2, .n_segs = 1, .segs = &to};
	const struct urxe_qp_attr failed = {.state = URXE_QPS_ERR};

	conn_open(pair, &conn, end);
	urxe_cq_arm(pair->node[0]->send_cq.cq, false);
	assert_int_equal(urxe_post_recv(end[1].rq, &recv), 0);
	assert_int_equal(urxe_post_send(end[0].qp, &send), 0);
	pair_run(pair, pair->now + MS);
	assert_int_equal(urxe_post_malformed(end[0].qp, 3, URXE_WC_LOC_QP_OP_ERR), 0);
	pair_run(pair, pair->now + MS);
	assert_int_equal(urxe_qp_modify(end[1].qp, pair->now, &failed, URXE_QP_STATE), 0);
	urxe_qp_flush_acks(end[1].qp);
	urxe_qp_execute(end[0].qp, pair->now);
	for (unsigned side = 0; side < 2; side++)
		urxe_qp_destroy(end[side].qp);
}

/* The request fails, because its path names no GID. */
static void post_datagram_without_gid(struct pair *pair, struct endpoint *end)
{
	const struct urxe_seg seg = node_seg(pair->node[0], 0, 100);
	struct urxe_path path = conn_path(URXE_NET_IPV4, pair->node[1]);
	const struct urxe_send_wr wr = {.wr_id = 6,
					.opcode = URXE_WR_SEND,
					.segs = &seg,
					.n_segs = 1,
					.path = &path,
					.remote_qpn = UINT32_MAX};

	path.sgid_index = UINT8_MAX;
	assert_int_equal(urxe_post_send(end->qp, &wr), 0);
	pair_run(pair, pair->now + MS);
}

static void use_datagrams(struct pair *pair)
{
	const struct conn_attr conn = conn_default(URXE_QPT_UD);
	const struct urxe_gid group = {{0xff, 0x0e, 1}};
	struct endpoint end[2];

	conn_open(pair, &conn, end);
	post_datagram_without_gid(pair, &end[0]);
	for (unsigned side = 0; side < 2; side++) {
		assert_int_equal(urxe_mcast_attach(end[side].qp, &group), 0);
		assert_int_equal(urxe_mcast_detach(end[side].qp, &group), 0);
		urxe_qp_destroy(end[side].qp);
	}
}

static void test_replay_of_each_scene_is_the_same(void **state)
{
	struct scene *s;

	(void)state;
	for (unsigned i = 0; (s = scene_open(i)); i++) {
		struct recorded_bytes recording[2];
		struct node_queue queue = {.node = s->pair->node[0]};

		for (unsigned side = 0; side < 2; side++) {
			open_recording(&recording[side], RECORDING_ROOM);
			start(s->pair, side, &recording[side], true);
		}
		pair_run(s->pair, s->pair->now + MS / 100);
		for (unsigned side = 0; side < 2; side++)
			save(s->pair, side);
		pair_run(s->pair, s->pair->now + 20 * MS);
		change_regions(s->pair->node[0]);
		change_device(s->pair->node[0]);
		change_queues(s->pair->node[0], &queue);
		use_new_connection(s->pair);
		use_datagrams(s->pair);
		for (unsigned side = 0; side < 2; side++) {
			urxe_record_stop(s->pair->node[side]->dev);
			assert_false(urxe_recording(s->pair->node[side]->dev));
			replay_same(&recording[side]);
			free(recording[side].bytes);
		}
		scene_close(s);
	}
}

/* --- Answers of callbacks. */

static struct pair *open_connection_of(const struct pair_attr *attr, struct endpoint end[2])
{
	struct pair *pair = pair_create(attr);
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.sq_sig_all = false;
	conn.retry_cnt = 1;
	conn.timeout = 8;
	conn_open(pair, &conn, end);
	return pair;
}

static struct pair *open_connection(struct endpoint end[2])
{
	return open_connection_of(&(struct pair_attr){.seed = 5}, end);
}

static void post_write(struct pair *pair, struct endpoint *end, uint32_t length)
{
	const struct urxe_seg seg = node_seg(pair->node[0], 0, length);
	const struct urxe_send_wr wr = {.wr_id = 9,
					.opcode = URXE_WR_RDMA_WRITE,
					.flags = URXE_SEND_SIGNALED,
					.n_segs = 1,
					.segs = &seg,
					.remote_addr = pair->node[1]->iova,
					.rkey = pair->node[1]->key};

	assert_int_equal(urxe_post_send(end->qp, &wr), 0);
}

/* Memory that is gone, a CQ that is full, a path that is cut. */
static void test_replay_gives_the_recorded_answers(void **state)
{
	(void)state;
	for (unsigned what = 0; what < 3; what++) {
		struct endpoint end[2];
		struct pair *pair = open_connection(end);
		struct recorded_bytes recording[2];

		for (unsigned side = 0; side < 2; side++) {
			open_recording(&recording[side], 1 << 20);
			start(pair, side, &recording[side], true);
		}
		pair->node[1]->byte_gone = what == 0 ? pair->node[1]->mem + 6000 : NULL;
		if (what == 1)
			pair->node[0]->send_cq.depth = 0;
		if (what == 2) {
			pair->node[0]->path_cut = true;
			pair->link[0].faults.drop = 1;
		}
		post_write(pair, &end[0], 9000);
		pair_run(pair, pair->now + 50 * MS);
		for (unsigned side = 0; side < 2; side++) {
			urxe_record_stop(pair->node[side]->dev);
			replay_same(&recording[side]);
			free(recording[side].bytes);
		}
		pair_destroy(pair);
	}
}

static void stop_and_replay(struct pair *pair, unsigned side, struct recorded_bytes *recording)
{
	urxe_record_stop(pair->node[side]->dev);
	replay_same(recording);
	free(recording->bytes);
}

/* The longest MTU needs a larger frame room than any packet; an owner may pass even larger ones. */
static void test_replay_of_calls_with_large_frame_rooms(void **state)
{
	const uint32_t rooms[] = {UINT16_MAX + 18, 1 << 20};

	(void)state;
	for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		struct endpoint end[2];
		struct pair *pair = open_connection_of(&(struct pair_attr){.mtu = UINT16_MAX}, end);
		struct recorded_bytes recording;

		pair_set_frame_room(pair, rooms[i]);
		open_recording(&recording, 1 << 20);
		start(pair, 0, &recording, true);
		post_write(pair, &end[0], 9000);
		pair_settle(pair);
		stop_and_replay(pair, 0, &recording);
		pair_destroy(pair);
	}
}

/* --- Fast registration. */

#define FAST_PAGE 4096u
#define FAST_IOVA UINT64_C(0x700000000000)

/* Registers two pages of node 1's memory, between which a page is left out. */
static struct urxe_fast_mr *register_pages(struct pair *pair, struct endpoint *end)
{
	struct urxe_send_wr wr = {.opcode = URXE_WR_REG_MR,
				  .fast_reg = {.access = NODE_ACCESS,
					       .iova = FAST_IOVA,
					       .length = 2 * FAST_PAGE,
					       .page_list = FAST_PAGE,
					       .n_pages = 2,
					       .page_shift = 12}};
	struct urxe_fast_mr *fast;

	assert_int_equal(urxe_fast_mr_alloc(pair->node[1]->dev, NODE_PD, 2, &fast), 0);
	wr.fast_reg.key = urxe_fast_mr_key(fast);
	assert_int_equal(urxe_post_send(end->qp, &wr), 0);
	pair_settle(pair);
	assert_non_null(urxe_fast_mr_region(fast));
	return fast;
}

static void unmap(struct urxe_fast_mr *fast, uint8_t *at)
{
	const struct urxe_extent bytes = {at, FAST_PAGE};

	assert_int_equal(urxe_mr_unmap(urxe_fast_mr_region(fast), &bytes), 0);
	urxe_mr_unmapped(urxe_fast_mr_region(fast), &bytes, true);
}

static void write_pages(struct pair *pair, struct endpoint *end, const struct urxe_fast_mr *fast)
{
	const struct urxe_seg seg = node_seg(pair->node[0], 0, 2 * FAST_PAGE);
	const struct urxe_send_wr wr = {.opcode = URXE_WR_RDMA_WRITE,
					.flags = URXE_SEND_SIGNALED,
					.n_segs = 1,
					.segs = &seg,
					.remote_addr = FAST_IOVA,
					.rkey = urxe_fast_mr_key(fast)};

	assert_int_equal(urxe_post_send(end->qp, &wr), 0);
	pair_settle(pair);
}

/* The region was registered before the recording or within it; other memory is unmapped, or its
 * second page. */
static void test_replay_of_fast_registration(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		struct endpoint end[2];
		struct pair *pair = open_connection(end);
		struct recorded_bytes recording;
		struct urxe_fast_mr *fast;

		open_recording(&recording, 1 << 20);
		if (how & 1)
			start(pair, 1, &recording, true);
		fast = register_pages(pair, &end[1]);
		if (!(how & 1))
			start(pair, 1, &recording, true);
		unmap(fast, pair->node[1]->mem + (how & 2 ? 3 : 8) * FAST_PAGE);
		write_pages(pair, &end[0], fast);
		stop_and_replay(pair, 1, &recording);
		pair_destroy(pair);
	}
}

/* --- The copy transport of a device, whose peer is not reached while the device is recorded. */

static const struct urxe_copy_table *no_table(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)ctx, (void)mac, (void)qpn;
	return NULL;
}

static void ignore_withdrawal(void *ctx)
{
	(void)ctx;
}

static bool is_settled(void *ctx)
{
	(void)ctx;
	return true;
}

/* A SEND without a completion, behind which a WRITE could be copied. */
static void post_send_and_write(struct pair *pair, struct endpoint end[2])
{
	const struct urxe_seg seg = node_seg(pair->node[0], 0, 100);
	const struct urxe_seg to = node_seg(pair->node[1], 0, 100);
	const struct urxe_recv_wr recv = {.n_segs = 1, .segs = &to};
	const struct urxe_send_wr send = {.opcode = URXE_WR_SEND, .n_segs = 1, .segs = &seg};

	assert_int_equal(urxe_post_recv(end[1].rq, &recv), 0);
	assert_int_equal(urxe_post_send(end[0].qp, &send), 0);
	post_write(pair, &end[0], 100);
	pair_settle(pair);
}

/* The peer has acknowledged packets (copy_is_proven) before the recording, within it, or both; a
 * save of the state, which forgets that, follows or not. */
static void test_replay_of_a_device_with_the_copy_transport(void **state)
{
	static const struct urxe_copy_ops copy_ops = {
		.table = no_table, .withdrawn = ignore_withdrawal, .settled = is_settled};

	(void)state;
	for (unsigned how = 0; how < 8; how++) {
		struct endpoint end[2];
		struct pair *pair = open_connection_of(
			&(struct pair_attr){.seed = 5, .copy_ops = &copy_ops}, end);
		struct recorded_bytes recording;

		open_recording(&recording, 1 << 20);
		if (how & 1)
			post_send_and_write(pair, end);
		start(pair, 0, &recording, true);
		if (how & 2)
			post_send_and_write(pair, end);
		if (how & 4)
			save(pair, 0);
		post_send_and_write(pair, end);
		assert_int_equal(urxe_post_malformed(end[0].qp, 3, URXE_WC_LOC_QP_OP_ERR), 0);
		urxe_qp_execute(end[0].qp, pair->now);
		pair_settle(pair);
		stop_and_replay(pair, 0, &recording);
		pair_destroy(pair);
	}
}

/* --- UDP GSO. */

static void test_replay_of_a_device_that_sends_gso_packets(void **state)
{
	struct endpoint end[2];
	struct pair *pair = open_connection(end);
	struct recorded_bytes recording[2];

	(void)state;
	for (unsigned side = 0; side < 2; side++)
		urxe_dev_set_gso(pair->node[side]->dev, true);
	post_write(pair, &end[0], 9000);
	pair_settle(pair);
	for (unsigned side = 0; side < 2; side++) {
		open_recording(&recording[side], 1 << 20);
		start(pair, side, &recording[side], true);
	}
	post_write(pair, &end[0], 90000);
	pair_settle(pair);
	for (unsigned side = 0; side < 2; side++)
		stop_and_replay(pair, side, &recording[side]);
	pair_destroy(pair);
}

/* --- The order of queue pairs. */

/* These QPNs collide in the device's table, so the order of creation is that of an iteration. */
static void test_replay_of_queue_pairs_in_any_order(void **state)
{
	static const uint32_t qpns[] = {36, 2};
	struct endpoint end[2][2];
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 5});
	struct recorded_bytes recording;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);

		conn.qpn[0] = qpns[i];
		conn_open(pair, &conn, end[i]);
	}
	open_recording(&recording, 1 << 20);
	start(pair, 0, &recording, true);
	pair->node[0]->send_cq.depth = 0;
	for (unsigned i = 0; i < 2; i++)
		post_write(pair, &end[i][0], 100);
	pair_settle(pair);
	stop_and_replay(pair, 0, &recording);
	pair_destroy(pair);
}

/* --- Captured frames. */

static const uint8_t *never_found(void *arg, uint32_t len, uint32_t digest)
{
	uint32_t *asked = arg;

	++*asked;
	assert_true(len && digest);
	return NULL;
}

static void test_a_frame_that_the_capture_lacks_ends_the_replay(void **state)
{
	struct endpoint end[2];
	struct pair *pair = open_connection(end);
	uint32_t asked = 0;
	struct urxe_replay replay = {.arg = &asked, .frame = never_found};
	struct recorded_bytes recording;

	(void)state;
	open_recording(&recording, 1 << 20);
	start(pair, 1, &recording, false);
	post_write(pair, &end[0], 100);
	pair_settle(pair);
	urxe_record_stop(pair->node[1]->dev);
	assert_int_equal(urxe_replay(&replay, recording.bytes, recording.n), -ENOENT);
	assert_int_equal(asked, 1);
	free(recording.bytes);
	pair_destroy(pair);
}

/* An ACK with an ICRC. */
static void make_ack(uint8_t frame[62], uint32_t psn)
{
	static const uint8_t ack[62] = {
		[1] = 1,     [7] = 2,     [12] = 0x08,            /* MACs, IPv4 */
		[14] = 0x45, [17] = 48,   [22] = 64,   [23] = 17, /* length, TTL, UDP */
		[26] = 10,   [29] = 1,    [30] = 10,   [33] = 2,  /* addresses */
		[34] = 0xc0, [36] = 0x12, [37] = 0xb7, [39] = 28, /* ports, length */
		[42] = 0x11, [44] = 0xff, [45] = 0xff, [48] = 16, /* opcode, P_Key, QPN */
		[54] = 0x1f,                                      /* AETH */
	};

	memcpy(frame, ack, sizeof(ack));
	frame[51] = (uint8_t)(psn >> 16);
	frame[52] = (uint8_t)(psn >> 8);
	frame[53] = (uint8_t)psn;
	urxe_frame_add_icrc(frame, sizeof(ack));
}

/* The ICRC is a CRC of the same bytes: a digest of the same polynomial would be a constant. */
static void test_small_frames_have_different_digests(void **state)
{
	uint8_t frame[62], other[62];

	(void)state;
	make_ack(frame, 7);
	for (uint32_t bit = 0; bit < 24; bit++) {
		make_ack(other, 7u ^ 1u << bit);
		assert_memory_not_equal(frame + 58, other + 58, 4);
		assert_int_not_equal(urxe_record_digest(frame, sizeof(frame)),
				     urxe_record_digest(other, sizeof(other)));
	}
}

/* --- Damage. */

static void record_write(struct recorded_bytes *recording, size_t room)
{
	struct endpoint end[2];
	struct pair *pair = open_connection(end);

	open_recording(recording, room);
	start(pair, 0, recording, true);
	post_write(pair, &end[0], 3000);
	pair_settle(pair);
	urxe_record_stop(pair->node[0]->dev);
	pair_destroy(pair);
}

static void test_each_part_of_a_recording_is_replayed(void **state)
{
	struct recorded_bytes recording;
	uint64_t calls = 0;
	size_t begun = 0;

	(void)state;
	record_write(&recording, 1 << 20);
	for (size_t n = 0; n <= recording.n; n++) {
		struct urxe_replay replay = {0};
		/* Bytes behind the part must not be read. */
		uint8_t *part = malloc(n ? n : 1);
		int rc;

		memcpy(part, recording.bytes, n);
		rc = urxe_replay(&replay, part, n);
		free(part);
		if (rc == -EBADMSG && !begun)
			continue; /* the state is not complete */
		assert_int_equal(rc, 0);
		begun = begun ? begun : n;
		assert_true(replay.calls >= calls);
		calls = replay.calls;
		assert_int_equal(replay.has_end, n == recording.n);
	}
	assert_true(begun && begun < recording.n && calls > 2);
	free(recording.bytes);
}

/* Each changed byte behind the state is noticed, or has no meaning for what the device does. */
static void test_changes_are_found(void **state)
{
	struct recorded_bytes recording;
	uint32_t different = 0, damaged = 0;
	size_t state_end;

	(void)state;
	record_write(&recording, 1 << 20);
	memcpy(&state_end, recording.bytes + 4, 4);
	state_end = (state_end & UINT32_MAX) + 8;
	for (size_t at = 0; at < recording.n; at++) {
		struct urxe_replay replay = {0};
		int rc;

		recording.bytes[at] ^= 0x01;
		rc = urxe_replay(&replay, recording.bytes, recording.n);
		recording.bytes[at] ^= 0x01;
		different += rc == -EILSEQ;
		damaged += rc == -EBADMSG;
		if (rc == -EILSEQ)
			assert_true(replay.has_expected || replay.has_actual || !replay.has_end);
		/* The state has a checksum. */
		if (at >= 8 + 16 && at < state_end)
			assert_int_equal(rc, rc == -EPROTONOSUPPORT ? rc : -EBADMSG);
	}
	assert_true(different > 20 && damaged > 100);
	replay_same(&recording);
	free(recording.bytes);
}

static void test_a_recording_without_room_has_a_mark(void **state)
{
	struct recorded_bytes whole, part;
	struct urxe_replay replay = {0};

	(void)state;
	record_write(&whole, 1 << 20);
	record_write(&part, whole.n - 100);
	assert_int_equal(urxe_replay(&replay, part.bytes, part.n), 0);
	assert_true(replay.lost && !replay.has_end && replay.calls > 0);
	free(part.bytes);
	free(whole.bytes);
}

static void test_a_state_without_room_is_an_error(void **state)
{
	struct endpoint end[2];
	struct pair *pair = open_connection(end);
	struct recorded_bytes recording;
	const struct urxe_recorder recorder = {.arg = &recording, .write = write_recording};

	(void)state;
	open_recording(&recording, 100);
	assert_int_equal(urxe_record_start(pair->node[0]->dev, pair->now, &recorder), -EFBIG);
	assert_false(urxe_recording(pair->node[0]->dev));
	free(recording.bytes);
	pair_destroy(pair);
}

/* A replay has no HCA. */
static void test_an_hca_ends_the_recording(void **state)
{
	static const struct urxe_offload_ops hca;
	struct endpoint end[2];
	struct pair *pair = open_connection(end);
	struct recorded_bytes recording;

	(void)state;
	open_recording(&recording, 1 << 20);
	start(pair, 0, &recording, true);
	change_regions(pair->node[0]);
	urxe_offload_set(pair->node[0]->dev, &hca, NULL);
	assert_false(urxe_recording(pair->node[0]->dev));
	urxe_offload_unset(pair->node[0]->dev);
	replay_same(&recording);
	free(recording.bytes);
	pair_destroy(pair);
}

static void test_a_hostile_recording_gets_no_memory(void **state)
{
	struct urxe_replay replay = {.max_bytes = 1000};
	struct recorded_bytes recording;

	(void)state;
	record_write(&recording, 1 << 20);
	assert_int_equal(urxe_replay(&replay, recording.bytes, recording.n), -EFBIG);
	free(recording.bytes);
}

/* Most bytes of the device below. A QP takes about 100 KiB of them. */
#define SMALL_DEVICE (1u << 20)

static int replay_small(const struct recorded_bytes *recording)
{
	struct urxe_replay replay = {.max_bytes = SMALL_DEVICE};

	return urxe_replay(&replay, recording->bytes, recording->n);
}

/* A server that accepts and closes connections for days. */
static void test_destroyed_objects_take_no_memory(void **state)
{
	struct endpoint end[2];
	struct pair *pair = open_connection(end);
	struct node_queue queue = {.node = pair->node[0]};
	struct recorded_bytes recording;

	(void)state;
	open_recording(&recording, RECORDING_ROOM);
	start(pair, 0, &recording, true);
	for (unsigned i = 0; i < 200; i++) {
		use_new_connection(pair);
		change_queues(pair->node[0], &queue);
		change_regions(pair->node[0]);
	}
	urxe_record_stop(pair->node[0]->dev);
	assert_int_equal(replay_small(&recording), 0);
	free(recording.bytes);
	pair_destroy(pair);
}

static void test_too_many_objects_get_no_memory(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint end[2];
	struct pair *pair = open_connection(end);
	struct recorded_bytes recording;

	(void)state;
	open_recording(&recording, RECORDING_ROOM);
	start(pair, 0, &recording, true);
	for (unsigned i = 0; i < 50; i++)
		conn_open(pair, &conn, end);
	urxe_record_stop(pair->node[0]->dev);
	replay_same(&recording);
	assert_int_equal(replay_small(&recording), -EFBIG);
	free(recording.bytes);
	pair_destroy(pair);
}

/* The engine may read the bytes that an ICRC would have behind a frame without one. Here the
 * recording ends with the frame, and the next page cannot be read. */
static void test_replay_of_a_short_frame_without_icrc(void **state)
{
	const size_t room = 1 << 20, page = 4096;
	uint8_t *pages =
		mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t data[16] = "short frame";
	struct urxe_frame frame = {.data = data, .len = sizeof(data), .without_icrc = true};
	struct urxe_replay replay = {0};
	struct recorded_bytes recording;
	struct endpoint end[2];
	struct pair *pair = open_connection(end);
	uint8_t *frame_end;
	size_t n;

	(void)state;
	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + room, page, PROT_NONE), 0);
	open_recording(&recording, room);
	start(pair, 0, &recording, false);
	urxe_input(pair->node[0]->dev, pair->now, &frame, 1);
	urxe_record_stop(pair->node[0]->dev);
	frame_end = memmem(recording.bytes, recording.n, data, 12);
	assert_non_null(frame_end);
	frame_end += 12;
	n = (size_t)(frame_end - recording.bytes);
	memcpy(pages + room - n, recording.bytes, n);
	assert_int_equal(urxe_replay(&replay, pages + room - n, n), 0);
	assert_int_equal(replay.calls, 1);
	munmap(pages, room + page);
	free(recording.bytes);
	pair_destroy(pair);
}

/* Counts packets with the right ICRC. */
static void count_whole_packet(void *arg, const struct urxe_replay_event *event)
{
	uint32_t *packets = arg;
	struct urxe_packet p;

	if (event->kind != URXE_REPLAY_RECEIVED)
		return;
	assert_int_equal(event->data_len, event->frame_len);
	assert_int_equal(urxe_packet_parse(&p, event->data, event->frame_len), 0);
	assert_true(urxe_packet_icrc_ok(&p));
	++*packets;
}

static void test_replay_reports_frames_without_icrc_as_packets(void **state)
{
	uint8_t data[256];
	struct urxe_frame frame = {.data = data, .room = sizeof(data)};
	uint32_t packets = 0;
	struct urxe_replay replay = {.arg = &packets, .event = count_whole_packet};
	struct recorded_bytes recording;
	struct endpoint end[2];
	struct pair *pair = open_connection(end);

	(void)state;
	open_recording(&recording, 1 << 20);
	start(pair, 1, &recording, false);
	post_write(pair, &end[0], 100);
	assert_int_equal(urxe_output(pair->node[0]->dev, pair->now, &frame, 1), 1);
	memset(data + frame.len - URXE_ICRC_LEN, 0xee, URXE_ICRC_LEN);
	frame.without_icrc = true;
	urxe_input(pair->node[1]->dev, pair->now, &frame, 1);
	urxe_record_stop(pair->node[1]->dev);
	assert_int_equal(urxe_replay(&replay, recording.bytes, recording.n), 0);
	assert_int_equal(packets, 1);
	free(recording.bytes);
	pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay_of_each_scene_is_the_same),
		cmocka_unit_test(test_replay_gives_the_recorded_answers),
		cmocka_unit_test(test_replay_of_calls_with_large_frame_rooms),
		cmocka_unit_test(test_replay_of_fast_registration),
		cmocka_unit_test(test_replay_of_a_device_with_the_copy_transport),
		cmocka_unit_test(test_replay_of_a_device_that_sends_gso_packets),
		cmocka_unit_test(test_replay_of_queue_pairs_in_any_order),
		cmocka_unit_test(test_a_frame_that_the_capture_lacks_ends_the_replay),
		cmocka_unit_test(test_small_frames_have_different_digests),
		cmocka_unit_test(test_each_part_of_a_recording_is_replayed),
		cmocka_unit_test(test_changes_are_found),
		cmocka_unit_test(test_a_recording_without_room_has_a_mark),
		cmocka_unit_test(test_a_state_without_room_is_an_error),
		cmocka_unit_test(test_an_hca_ends_the_recording),
		cmocka_unit_test(test_a_hostile_recording_gets_no_memory),
		cmocka_unit_test(test_destroyed_objects_take_no_memory),
		cmocka_unit_test(test_too_many_objects_get_no_memory),
		cmocka_unit_test(test_replay_of_a_short_frame_without_icrc),
		cmocka_unit_test(test_replay_reports_frames_without_icrc_as_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
