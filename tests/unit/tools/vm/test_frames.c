/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* PVRDMA's frames on their way into the shared memory of the switch, mixed with frames to itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <vnic/regs.h>

#include "pvrdma_driver.h"
#include "vm/frames.h"

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
	struct station_link link;
	struct vmxnet3_function nic;
	struct pvrdma_function rdma;
	struct vm_session session; /* without a daemon */
	struct machine_peers peers;
	struct frames frames;
};

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
	open_queues(&f);
	open_link(&f);
	attr.bars = f.nic.bars = aligned_alloc(4096, VNIC_BAR_SIZE);
	memset(f.nic.bars, 0, VNIC_BAR_SIZE);
	assert_int_equal(vnic_device_create(&attr, &f.nic.dev), 0);
	f.rdma.dev = f.guest[0].dev;
	f.peers.session = &f.session;
	assert_int_equal(frames_init(&f.frames, &f.link, &f.nic, &f.rdma, &f.peers), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	frames_free(&f->frames);
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

/* The switch's end: frames of the station, to guest 1, and its answers. */
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
		frames_run(&f->frames, f->guest[0].now);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frames_between_own_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_daemon_frames_are_dropped, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
