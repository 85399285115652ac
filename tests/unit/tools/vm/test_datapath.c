/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * PVRDMA's frames on their way into the shared memory of the switch, mixed with frames to itself,
 * and to and from the inboxes of peers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <rxe/announcement.h>
#include <rxe/packet.h>
#include <unistd.h>
#include <vnic/regs.h>

#include "common/clock.h"
#include "pvrdma_driver.h"
#include "vm/datapath.h"
#include "vnic_loop.h"

#define STRIDE   9088u
#define MESSAGES 120u /* so many that own frames are first in a burst of others */
#define PART     256u
#define VA       0x100000u
#define BURST    32
#define DEPTH    128 /* of queues */
#define OWN_MTU  9000

/* Guest 0 is behind the frames; guest 1 behind the switch's end of the port. */
struct fixture {
	struct guest guest[2];
	struct cq cq[2];
	struct buffer buffer[2];
	struct qp away[2]; /* from guest 0 to guest 1 */
	struct qp own[2];  /* both of guest 0 */
	struct netdev *port;
	struct netdev_shm_fds fds;
	struct switch_link link;
	struct vmxnet3_function nic;
	struct pvrdma_function rdma;
	struct vm_session session; /* without a daemon, until meet */
	struct machine_peers peers;
	/* Of the process that has guest 1, once guest 0 has met it. */
	struct vnic_loop *loop;
	struct vnic_inbox *inbox;
	struct vnic_outbox *back; /* to guest 0's process */
	uint32_t by_inbox;        /* frames of guest 0 */
	struct datapath datapath;
};

/*
 * The linker puts these functions in the places of vnic_device_rx and its companions. The NIC has
 * two receive queues; byte 14 of a frame is its queue.
 */
static uint32_t nic_frames, nic_good_frames, nic_delivered[2], nic_given_up[2];
static bool nic_full[2], nic_stalled[2];
static uint8_t nic_refused_by;

int __wrap_vnic_device_rx(struct vnic_device *dev, uint32_t flow, const uint8_t *data,
			  uint32_t len);

int __wrap_vnic_device_rx(struct vnic_device *dev, uint32_t flow, const uint8_t *data, uint32_t len)
{
	struct urxe_packet p;

	(void)dev, (void)flow;
	nic_frames++;
	if (data[14] < 2 && nic_full[data[14]]) {
		nic_refused_by = data[14];
		return -ENOBUFS;
	}
	if (data[14] < 2) {
		nic_delivered[data[14]]++;
		nic_stalled[data[14]] = false;
	}
	nic_good_frames += !urxe_packet_parse(&p, data, len) && urxe_packet_icrc_ok(&p);
	return 0;
}

static void reset_nic(bool full0, bool full1)
{
	for (unsigned i = 0; i < 2; i++)
		nic_delivered[i] = nic_given_up[i] = nic_stalled[i] = 0;
	nic_full[0] = full0;
	nic_full[1] = full1;
}

void __wrap_vnic_device_rx_give_up(struct vnic_device *dev, bool stalled);

void __wrap_vnic_device_rx_give_up(struct vnic_device *dev, bool stalled)
{
	(void)dev;
	nic_given_up[nic_refused_by]++;
	nic_stalled[nic_refused_by] |= stalled;
}

bool __wrap_vnic_device_rx_is_stalled(const struct vnic_device *dev);

bool __wrap_vnic_device_rx_is_stalled(const struct vnic_device *dev)
{
	(void)dev;
	return nic_stalled[nic_refused_by];
}

/* The linker puts this function in the place of pvrdma_station_returned. */
static uint32_t returns;

void __wrap_pvrdma_station_returned(struct pvrdma *dev, uint64_t now, const uint8_t mac[6]);

void __wrap_pvrdma_station_returned(struct pvrdma *dev, uint64_t now, const uint8_t mac[6])
{
	(void)dev, (void)now, (void)mac;
	returns++;
}

static void open_queues(struct fixture *f)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct qp_attr qp = {.type = URXE_QPT_RC,
					   .send_wr = DEPTH,
					   .send_cq = &f->cq[i],
					   .recv_cq = &f->cq[i]};

		guest_open(&f->guest[i], &(struct guest_attr){.id = (uint8_t)(i + 1)});
		guest_start(&f->guest[i]);
		cq_open(&f->guest[i], &f->cq[i], 2 * DEPTH);
		qp_open(&f->guest[i], &f->away[i], &qp);
		buffer_open(&f->guest[i], &f->buffer[i], VA, 3 * MESSAGES * PART, 15);
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct qp_attr qp = {.type = URXE_QPT_RC,
					   .send_wr = DEPTH,
					   .send_cq = &f->cq[0],
					   .recv_cq = &f->cq[0]};

		qp_connect(&f->guest[i], &f->away[i], &f->guest[!i], &f->away[!i]);
		qp_open(&f->guest[0], &f->own[i], &qp);
	}
	for (unsigned i = 0; i < 2; i++)
		qp_connect(&f->guest[0], &f->own[i], &f->guest[0], &f->own[!i]);
}

static void open_link(struct fixture *f)
{
	size_t size;

	assert_int_equal(netdev_shm_create(OWN_MTU, &f->port), 0);
	assert_int_equal(netdev_shm_connect(f->port, &f->fds), 0);
	assert_int_equal(netdev_shm_attach(&f->fds, &f->link.peer), 0);
	f->link.buffers = netdev_shm_buffers(f->link.peer, &size);
	f->link.stride = STRIDE;
	netdev_shm_set_ready(f->link.peer);
}

static void ignore_interrupt(void *ctx, uint32_t vector)
{
	(void)ctx, (void)vector;
}

static int setup(void **state)
{
	struct vnic_device_attr attr = {
		.mtu = OWN_MTU, .mac = {2, 0, 0, 0, 1, 1}, .interrupt = ignore_interrupt};
	static struct fixture f;

	f = (struct fixture){0};
	reset_nic(false, false);
	open_queues(&f);
	open_link(&f);
	attr.bars = f.nic.bars = aligned_alloc(4096, VNIC_BAR_SIZE);
	memset(f.nic.bars, 0, VNIC_BAR_SIZE);
	assert_int_equal(vnic_device_create(&attr, &f.nic.dev), 0);
	f.rdma.dev = f.guest[0].dev;
	f.peers.session = &f.session;
	assert_int_equal(datapath_init(&f.datapath, &f.link, &f.nic, &f.rdma, &f.peers), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	datapath_free(&f->datapath);
	machine_peers_close(&f->peers);
	if (f->loop) {
		vnic_outbox_close(f->back);
		vnic_inbox_destroy(f->inbox);
		vnic_loop_close(f->loop);
	}
	vnic_device_destroy(f->nic.dev);
	free(f->nic.bars);
	netdev_shm_detach(f->link.peer);
	netdev_close(f->port);
	for (unsigned i = 0; i < 2; i++) {
		guest_pages_free(&f->cq[i].pages);
		guest_pages_free(&f->away[i].pages);
		guest_pages_free(&f->own[i].pages);
		guest_pages_free(&f->buffer[i].pages);
		guest_close(&f->guest[i]);
	}
	return 0;
}

/* A WRITE of the message's part of guest 0's buffer to the same part of the target, plus `to`. */
static void post_write(struct fixture *f, struct qp *qp, unsigned message, unsigned target,
		       uint64_t to)
{
	const uint64_t at = message * PART;
	const struct pvrdma_sge sge = buffer_sge(&f->buffer[0], at, PART);
	const struct pvrdma_sq_wqe_hdr header = {
		.num_sge = 1,
		.opcode = PVRDMA_WR_RDMA_WRITE,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = VA + to + at, .rkey = f->buffer[target].key},
	};

	qp_post_send(&f->guest[0], qp, &header, &sge);
}

/* The switch's end: frames of the port, to guest 1, and its answers. */
static void answer(struct fixture *f)
{
	static uint8_t bytes[BURST][2048];
	struct netdev_frame received[BURST];
	struct urxe_frame frames[BURST];
	uint32_t n = netdev_rx(f->port, 0, received, BURST);

	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct urxe_frame){.data = (uint8_t *)(uintptr_t)received[i].data,
						.len = received[i].len,
						.from_wire = true};
	pvrdma_input(f->guest[1].dev, f->guest[1].now, frames, n);
	for (uint32_t i = 0; i < BURST; i++)
		frames[i] = (struct urxe_frame){.data = bytes[i], .room = sizeof(bytes[i])};
	n = pvrdma_output(f->guest[1].dev, f->guest[1].now, frames, BURST);
	for (uint32_t i = 0; i < n; i++)
		received[i] = (struct netdev_frame){frames[i].data, frames[i].len, 0, 0};
	assert_int_equal(netdev_tx(f->port, 0, received, n), n);
}

static void run(struct fixture *f)
{
	for (unsigned i = 0; i < 4 * MESSAGES; i++) {
		datapath_run(&f->datapath, f->guest[0].now);
		answer(f);
	}
}

/* Time stands still, so a frame that arrives with wrong contents is not repeated. */
static void test_frames_between_own_frames(void **state)
{
	struct fixture *f = *state;
	struct pvrdma_cqe cqe;

	for (unsigned i = 0; i < MESSAGES; i++)
		buffer_fill(&f->guest[0], &f->buffer[0], i * PART, PART, (uint8_t)i);
	for (unsigned i = 0; i < MESSAGES; i++)
		post_write(f, &f->away[0], i, 1, 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		post_write(f, &f->own[i % 2], i, 0, (1 + i % 2) * MESSAGES * PART);
	run(f);
	for (unsigned i = 0; i < MESSAGES; i++) {
		const uint64_t own = ((1 + i % 2) * MESSAGES + i) * PART;

		assert_true(buffer_has(&f->guest[1], &f->buffer[1], i * PART, PART, (uint8_t)i));
		assert_true(buffer_has(&f->guest[0], &f->buffer[0], own, PART, (uint8_t)i));
	}
	for (unsigned i = 0; i < 2 * MESSAGES; i++) {
		assert_true(cq_poll(&f->guest[0], &f->cq[0], &cqe));
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
	}
}

static void test_without_daemon_frames_are_dropped(void **state)
{
	struct fixture *f = *state;
	struct netdev_shm_peer *peer = f->link.peer;

	f->link.peer = NULL;
	post_write(f, &f->own[0], 0, 0, MESSAGES * PART);
	post_write(f, &f->away[0], 0, 1, 0);
	run(f);
	assert_true(f->link.dropped > 0);
	f->link.peer = peer;
	assert_int_equal(netdev_rx(f->port, 0, (struct netdev_frame[1]){0}, 1), 0);
}

static void announce(struct fixture *f, const uint8_t mac[6], uint64_t now)
{
	uint8_t data[URXE_ANNOUNCEMENT_LEN];
	const struct netdev_frame frame = {data, sizeof(data), 0, 0};

	urxe_announcement_build(data, mac);
	assert_int_equal(netdev_tx(f->port, 0, &frame, 1), 1);
	datapath_run(&f->datapath, now);
}

/* A station behind the switch can announce itself, at most each 10 ms, but not the machine. */
static void test_machine_hears_other_stations_only(void **state)
{
	const uint8_t own[6] = {2, 0, 0, 0, 1, 1}, other[6] = {2, 0, 0, 0, 1, 2},
		      third[6] = {2, 0, 0, 0, 1, 3};
	struct fixture *f = *state;
	const uint64_t begin = f->guest[0].now + 1000000000;

	memcpy(f->link.mac, own, sizeof(own));
	returns = 0;
	announce(f, own, begin);
	assert_int_equal(returns, 0);
	announce(f, other, begin + 1);
	assert_int_equal(returns, 1);
	announce(f, other, begin + 10000000);
	assert_int_equal(returns, 1);
	announce(f, other, begin + 10000001);
	assert_int_equal(returns, 2);
	announce(f, third, begin + 10000002); /* two machines move at once */
	assert_int_equal(returns, 3);
}

/* --- Receive queues without buffers */

/* A frame for a receive queue of the machine's NIC. */
static bool send_to_queue(struct fixture *f, uint8_t queue)
{
	uint8_t data[64] = {2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 9, 9, 8, 6, queue};
	const struct netdev_frame frame = {data, sizeof(data), 0, 0};

	return netdev_tx(f->port, 0, &frame, 1) == 1;
}

/* Frames of the other queue wait for the stalled one once, and then no more. */
static void test_stalled_queue_does_not_hold_up_others(void **state)
{
	struct fixture *f = *state;
	const uint64_t begin = f->guest[0].now + NS_PER_SEC;
	uint32_t sent = 0;

	pvrdma_reset(f->guest[0].dev);
	reset_nic(false, true);
	for (uint64_t now = begin; now < begin + 100 * NS_PER_MS; now += NS_PER_MS / 10) {
		while (send_to_queue(f, sent & 1))
			sent++;
		datapath_run(&f->datapath, now);
	}
	assert_int_equal(nic_delivered[1], 0);
	assert_true(nic_delivered[0] > 90 * 10 * 8);
	/* Frames come in turn. */
	assert_in_range(nic_given_up[1] + 1, nic_delivered[0], nic_delivered[0] + 2);
}

/* The process sleeps while it waits for a buffer, and after the frame is given up. */
static void test_full_queue_lets_the_process_sleep(void **state)
{
	struct fixture *f = *state;
	const uint64_t begin = f->guest[0].now + NS_PER_SEC;

	pvrdma_reset(f->guest[0].dev);
	reset_nic(true, false);
	assert_true(send_to_queue(f, 0));
	datapath_run(&f->datapath, begin);
	assert_int_equal(datapath_deadline(&f->datapath, begin), begin + 10 * NS_PER_MS);
	/* The frame that waits is no news. */
	assert_false(datapath_arm(&f->datapath, begin));
	datapath_run(&f->datapath, begin + 10 * NS_PER_MS);
	assert_int_equal(nic_given_up[0], 1);
	assert_int_equal(datapath_deadline(&f->datapath, begin + 20 * NS_PER_MS), UINT64_MAX);
	assert_false(datapath_arm(&f->datapath, begin + 20 * NS_PER_MS));
	/* The link is armed: the next frame wakes the process. */
	assert_true(send_to_queue(f, 0));
	assert_true(datapath_arm(&f->datapath, begin + 20 * NS_PER_MS));
	/* The stalled queue recovers. */
	nic_full[0] = false;
	datapath_run(&f->datapath, begin + 21 * NS_PER_MS);
	assert_int_equal(nic_delivered[0], 1);
	nic_full[0] = true;
	assert_true(send_to_queue(f, 0));
	datapath_run(&f->datapath, begin + 30 * NS_PER_MS);
	assert_int_equal(datapath_deadline(&f->datapath, begin + 30 * NS_PER_MS),
			 begin + 40 * NS_PER_MS);
	/* Another machine's driver, or none: no frame waits. */
	nic_full[0] = false;
	datapath_run(&f->datapath, begin + 31 * NS_PER_MS);
	assert_int_equal(datapath_deadline(&f->datapath, begin + 31 * NS_PER_MS), UINT64_MAX);
}

/* Frames of PVRDMA must not wait behind a frame for the NIC. */
static void test_frames_do_not_wait_beside_pvrdma(void **state)
{
	struct fixture *f = *state;
	const uint64_t now = f->guest[0].now;

	reset_nic(true, false);
	assert_true(pvrdma_active(f->guest[0].dev));
	assert_true(send_to_queue(f, 0));
	datapath_run(&f->datapath, now);
	assert_int_equal(nic_given_up[0], 1);
	assert_int_equal(f->datapath.blocked_since, 0);
}

/* --- Inboxes */

static void allow_bypass(struct fixture *f, bool on)
{
	*(uint32_t *)((uint8_t *)f->loop->bars + VNIC_REG_BYPASS) = on;
}

static void dup_fds(const struct vnic_inbox *inbox, int fds[VNIC_INBOX_FDS])
{
	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
}

/* The process of guest 1 is on this host, and both have each other's inbox. */
static void meet(struct fixture *f)
{
	static const struct peers_ops ops;
	const uint32_t process = VNIC_BLOCK(f->away[1].qpn);
	struct vnic_outbox *outbox;
	int fds[VNIC_INBOX_FDS];

	peers_init(&f->peers.peers, &ops, NULL);
	assert_int_equal(vnic_loop_open(OWN_MTU, &f->loop), 0);
	allow_bypass(f, true);
	f->session.nic = f->loop->driver;
	f->session.welcome.mtu = OWN_MTU;
	f->session.welcome.qpn_first = (process + 1) << 12;
	assert_int_equal(vnic_inbox_create(OWN_MTU, &f->peers.inbox), 0);
	assert_int_equal(vnic_inbox_create(OWN_MTU, &f->inbox), 0);
	dup_fds(f->peers.inbox, fds);
	assert_int_equal(vnic_outbox_open(fds, OWN_MTU, process, &f->back), 0);
	dup_fds(f->inbox, fds);
	assert_int_equal(vnic_outbox_open(fds, OWN_MTU, process + 1, &outbox), 0);
	f->peers.routes[process] =
		peer_route_open(&f->peers.peers, outbox, f->guest[1].mac, process);
	assert_non_null(f->peers.routes[process]);
}

/* Gives guest 1 its inbox's frames, and guest 0's process the answers. */
static void answer_by_inbox(struct fixture *f)
{
	static uint8_t bytes[BURST][OWN_MTU + 18];
	enum vnic_outbox_status status;
	struct vnic_frame buffers[BURST];
	struct urxe_frame frames[BURST];
	uint32_t n = vnic_inbox_rx(f->inbox, buffers, BURST);

	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct urxe_frame){.data = buffers[i].data,
						.len = buffers[i].len + URXE_ICRC_LEN,
						.without_icrc = true};
	pvrdma_input(f->guest[1].dev, f->guest[1].now, frames, n);
	vnic_inbox_rx_release(f->inbox, n);
	f->by_inbox += n;
	for (uint32_t i = 0; i < BURST; i++)
		frames[i] = (struct urxe_frame){.data = bytes[i], .room = sizeof(bytes[i])};
	n = pvrdma_output(f->guest[1].dev, f->guest[1].now, frames, BURST);
	for (uint32_t i = 0; i < n; i++)
		buffers[i] = (struct vnic_frame){.data = frames[i].data,
						 .len = frames[i].len - URXE_ICRC_LEN};
	assert_int_equal(vnic_outbox_send(f->back, buffers, n, &status), n);
}

static void write_all(struct fixture *f)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		buffer_fill(&f->guest[0], &f->buffer[0], i * PART, PART, (uint8_t)i);
		post_write(f, &f->away[0], i, 1, 0);
	}
}

static void expect_repeated(struct fixture *f)
{
	struct pvrdma_cqe cqe;

	for (unsigned i = 0; i < MESSAGES; i++) {
		assert_true(buffer_has(&f->guest[1], &f->buffer[1], i * PART, PART, (uint8_t)i));
		assert_true(cq_poll(&f->guest[0], &f->cq[0], &cqe));
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
	}
}

/* All messages arrive, and none was repeated. */
static void expect_all(struct fixture *f)
{
	expect_repeated(f);
	assert_int_equal(pvrdma_engine_counters(f->guest[0].dev)->event[URXE_EVENT_RETRANSMIT], 0);
}

static void expect_none_by_switch(struct fixture *f)
{
	assert_int_equal(netdev_rx(f->port, 0, (struct netdev_frame[1]){0}, 1), 0);
}

static void test_frames_to_a_peer_go_to_its_inbox(void **state)
{
	struct fixture *f = *state;

	meet(f);
	write_all(f);
	for (unsigned i = 0; i < MESSAGES; i++) {
		datapath_run(&f->datapath, f->guest[0].now);
		answer_by_inbox(f);
	}
	expect_all(f);
	expect_none_by_switch(f);
	assert_int_equal(f->by_inbox, MESSAGES);
	assert_int_equal(f->peers.counters[VNIC_BYPASS_SENT], MESSAGES);
	assert_true(f->peers.counters[VNIC_BYPASS_RECEIVED] > 0);
}

/*
 * Without a daemon all frames are in own buffers: those to itself permute them, and those to the
 * inbox are not lost by that. Time stands still, so no frame is repeated.
 */
static void test_frames_to_an_inbox_without_daemon(void **state)
{
	struct fixture *f = *state;
	struct netdev_shm_peer *peer = f->link.peer;

	meet(f);
	f->link.peer = NULL;
	write_all(f);
	for (unsigned i = 0; i < MESSAGES; i++)
		post_write(f, &f->own[i % 2], i, 0, (1 + i % 2) * MESSAGES * PART);
	for (unsigned i = 0; i < 4 * MESSAGES; i++) {
		datapath_run(&f->datapath, f->guest[0].now);
		answer_by_inbox(f);
	}
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_true(buffer_has(&f->guest[1], &f->buffer[1], i * PART, PART, (uint8_t)i));
	f->link.peer = peer;
	assert_int_equal(f->link.dropped, 0);
}

/* Without PVRDMA's driver, frames from inboxes are for a software RoCE in the machine. */
static void test_frames_from_inboxes_reach_the_nic(void **state)
{
	struct fixture *f = *state;

	meet(f);
	write_all(f);
	datapath_run(&f->datapath, f->guest[0].now);
	answer_by_inbox(f); /* an ACK waits in guest 0's inbox */
	pvrdma_reset(f->guest[0].dev);
	nic_frames = nic_good_frames = 0;
	datapath_run(&f->datapath, f->guest[0].now);
	assert_true(nic_frames > 0);
	assert_int_equal(nic_good_frames, nic_frames);
	assert_int_equal(pvrdma_counters(f->guest[0].dev)[PVRDMA_RX_UNWANTED], 0);
}

/* Fills the inbox of guest 1's process until n more frames fit. */
static void fill_inbox(struct fixture *f, uint32_t n)
{
	struct vnic_frame frame = {.data = (uint8_t[64]){0}, .len = 64};
	enum vnic_outbox_status status;
	struct vnic_outbox *other;
	int fds[VNIC_INBOX_FDS];

	dup_fds(f->inbox, fds);
	assert_int_equal(vnic_outbox_open(fds, OWN_MTU, 77, &other), 0);
	for (uint32_t i = n; i < VNIC_INBOX_FRAMES; i++)
		assert_int_equal(vnic_outbox_send(other, &frame, 1, &status), 1);
	vnic_outbox_close(other);
}

/* Frames of the guest's NIC use the ring to the switch meanwhile. */
static void send_others(struct fixture *f)
{
	const uint8_t frame[1024] = {2, 0, 0, 0, 9, 9};
	struct netdev_frame received[BURST];

	for (int i = 0; i < BURST; i++)
		switch_link_send(&f->link, frame, sizeof(frame));
	switch_link_flush(&f->link);
	assert_int_equal(netdev_rx(f->port, 0, received, BURST), BURST);
}

/* Frames wait for room in the inbox, and arrive in their order. */
static void test_frames_wait_for_a_full_inbox(void **state)
{
	struct fixture *f = *state;
	uint64_t now;

	meet(f);
	fill_inbox(f, 5);
	write_all(f);
	now = f->guest[0].now;
	for (int i = 0; i < 4; i++)
		datapath_run(&f->datapath, now);
	send_others(f);
	assert_int_equal(f->peers.counters[VNIC_BYPASS_SENT], 5);
	assert_true(datapath_deadline(&f->datapath, now) > now);
	assert_true(datapath_deadline(&f->datapath, now) <= now + 100000);
	for (unsigned i = 0; i < MESSAGES; i++) {
		answer_by_inbox(f);
		datapath_run(&f->datapath, now);
	}
	expect_all(f);
	expect_none_by_switch(f);
}

/* The inbox stays full: frames go by the switch, with their ICRC. */
static void test_stalled_peer_gets_frames_by_the_switch(void **state)
{
	struct fixture *f = *state;

	meet(f);
	fill_inbox(f, 0);
	f->guest[0].now += 1000;
	write_all(f);
	datapath_run(&f->datapath, f->guest[0].now);
	assert_int_equal(f->peers.counters[VNIC_BYPASS_SENT], 0);
	f->guest[0].now += PEER_ROUTE_STALLED_NS;
	f->guest[1].now = f->guest[0].now;
	run(f);
	expect_repeated(f);
	assert_true(f->peers.counters[VNIC_BYPASS_FULL] >= MESSAGES);
}

/* While urxed captures frames; and after the end of the peer's process. */
static void test_switch_replaces_inboxes(void **state)
{
	struct fixture *f = *state;

	meet(f);
	allow_bypass(f, false);
	write_all(f);
	run(f);
	expect_all(f);
	assert_int_equal(f->peers.counters[VNIC_BYPASS_SENT], 0);
	assert_true(f->peers.counters[VNIC_BYPASS_OFF] >= MESSAGES);
	allow_bypass(f, true);
	vnic_inbox_destroy(f->inbox);
	f->inbox = NULL;
	write_all(f);
	run(f);
	expect_all(f);
	assert_int_equal(f->peers.counters[VNIC_BYPASS_SENT], 0);
}

/* The receiver knows the machine's process by the QP that sends. */
static void test_references_name_their_qp(void **state)
{
	struct fixture *f = *state;
	/* Also those that an HCA has chosen, which may be below 4096. */
	const uint32_t qpns[] = {f->away[0].qpn, f->away[0].qpn + (3 << 12), 0x11};
	uint8_t bytes[64] = {0};
	struct urxe_frame frame = {.data = bytes, .len = sizeof(bytes), .dest_qpn = f->away[1].qpn};
	struct vnic_frame received;
	bool waits;

	meet(f);
	memcpy(bytes, f->guest[1].mac, 6);
	for (uint32_t i = 0; i < 3; i++) {
		frame.reference = (struct urxe_reference){.length = 8192, .src_qpn = qpns[i]};
		assert_int_equal(machine_peers_send(&f->peers, 0, &frame, 1, &waits), 1);
		assert_int_equal(vnic_inbox_rx(f->inbox, &received, 1), 1);
		assert_int_equal(received.reference.length, 8192);
		assert_int_equal(received.reference.qpn, qpns[i]);
		vnic_inbox_rx_release(f->inbox, 1);
	}
}

/* A sleep ends with the next frame in the inbox. */
static void test_inbox_wakes(void **state)
{
	struct fixture *f = *state;
	struct vnic_frame frame = {.data = (uint8_t[64]){0}, .len = 64};
	enum vnic_outbox_status status;
	uint64_t now, count;

	meet(f);
	now = f->guest[0].now;
	assert_false(machine_peers_arm(&f->peers));
	assert_int_equal(vnic_outbox_send(f->back, &frame, 1, &status), 1);
	assert_int_equal(read(machine_peers_fd(&f->peers), &count, sizeof(count)), sizeof(count));
	assert_true(datapath_run(&f->datapath, now));
	assert_true(f->datapath.rdma_moved);
	assert_false(datapath_run(&f->datapath, now));
	assert_false(f->datapath.rdma_moved);
	assert_int_equal(f->peers.counters[VNIC_BYPASS_RECEIVED], 1);
	/* Awake: no interrupt, and the look before the next sleep finds the frame. */
	assert_int_equal(vnic_outbox_send(f->back, &frame, 1, &status), 1);
	assert_int_equal(read(machine_peers_fd(&f->peers), &count, sizeof(count)), -1);
	assert_true(machine_peers_arm(&f->peers));
	/* A frame whose reference names a process that is not known is dropped. */
	frame.reference = (struct vnic_reference){.qpn = 4000 << 12, .length = 8192};
	assert_int_equal(vnic_outbox_send(f->back, &frame, 1, &status), 1);
	frame.reference.qpn = UINT32_MAX;
	assert_int_equal(vnic_outbox_send(f->back, &frame, 1, &status), 1);
	datapath_run(&f->datapath, now);
	assert_int_equal(f->peers.counters[VNIC_BYPASS_UNREACHED], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frames_between_own_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_daemon_frames_are_dropped, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_machine_hears_other_stations_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_to_a_peer_go_to_its_inbox, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_from_inboxes_reach_the_nic, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_wait_for_a_full_inbox, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stalled_peer_gets_frames_by_the_switch, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_switch_replaces_inboxes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_references_name_their_qp, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stalled_queue_does_not_hold_up_others, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_full_queue_lets_the_process_sleep, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_do_not_wait_beside_pvrdma, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_to_an_inbox_without_daemon, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_inbox_wakes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
