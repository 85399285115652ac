/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The order in which a run of the engine shows its results to the program and to peers. */
#include <rxe/opcode.h>

#include "craft.h"
#include "loop_cq.h"
#include "poll/engine_run.h"
#include "queues/verbs_qp.h"

#define MTU      1500
#define QPN      0x100
#define PEER_QPN 0x200
#define PSN      7

uint32_t __wrap_vnic_driver_rx(struct vnic_driver *nic, struct vnic_frame *frames, uint32_t n);
void __wrap_vnic_driver_rx_release(struct vnic_driver *nic, uint32_t n);
bool __real_tx_send(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n);
bool __wrap_tx_send(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n);

static struct loop_cq device;
static struct rxe_queue_buf no_receives;
static struct qp qp = {
	.object = {.type = OBJECT_QP, .file = &device.context},
	.recv.wq.ring.buf = &no_receives,
	.dirty = true,
};
static uint8_t frame[CRAFT_MAX];
static uint32_t frame_length; /* of the next frame that the NIC receives; 0: none */
static int acks;
static uint32_t visible; /* completions that the program found when the last ACK was sent */

uint32_t __wrap_vnic_driver_rx(struct vnic_driver *nic, struct vnic_frame *frames, uint32_t n)
{
	(void)nic;
	if (!n || !frame_length)
		return 0;
	frames[0] = (struct vnic_frame){.data = frame, .len = frame_length, .room = sizeof(frame)};
	frame_length = 0;
	return 1;
}

void __wrap_vnic_driver_rx_release(struct vnic_driver *nic, uint32_t n)
{
	(void)nic;
	(void)n;
}

bool __wrap_tx_send(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (frames[i].acknowledges) {
			acks++;
			visible = queue_producer(&device.cq.ring);
		}
	return __real_tx_send(tx, now, frames, n);
}

/* A queue pair that is ready to receive, with a receive request for a message without data. */
static void create_qp(void)
{
	const struct urxe_qp_init init = {
		.ctx = &qp,
		.type = URXE_QPT_RC,
		.qpn = QPN,
		.send_cq = device.cq.cq,
		.recv_cq = device.cq.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1},
	};
	const struct urxe_gid gid = craft_gid(URXE_NET_IPV4, 1);
	struct urxe_qp_attr attr = {
		.state = URXE_QPS_INIT,
		.port = 1,
		.path = {.dgid = craft_gid(URXE_NET_IPV4, 2), .dmac = {2, 0, 0, 0, 0, 2}},
		.path_mtu = URXE_MTU_1024,
		.dest_qpn = PEER_QPN,
		.rq_psn = PSN,
	};
	const struct urxe_recv_wr receive = {.wr_id = 1};

	assert_int_equal(urxe_gid_set(adapter.dev, 0, &gid, false), 0);
	assert_int_equal(urxe_qp_create(adapter.dev, &init, &qp.qp), 0);
	assert_int_equal(urxe_qp_modify(qp.qp, 0, &attr,
					URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT |
						URXE_QP_ACCESS_FLAGS),
			 0);
	attr.state = URXE_QPS_RTR;
	assert_int_equal(urxe_qp_modify(qp.qp, 0, &attr,
					URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU |
						URXE_QP_DEST_QPN | URXE_QP_RQ_PSN |
						URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER),
			 0);
	assert_int_equal(urxe_post_recv(urxe_qp_rq(qp.qp), &receive), 0);
}

static int setup(void **state)
{
	(void)state;
	loop_cq_open(&device, MTU, 4, 0);
	create_qp();
	acks = 0;
	visible = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	urxe_qp_destroy(qp.qp);
	loop_cq_close(&device);
	return 0;
}

static void receive_message(void)
{
	const struct urxe_packet p = {
		.dmac = {2, 0, 0, 0, 0, 1},
		.smac = {2, 0, 0, 0, 0, 2},
		.net = URXE_NET_IPV4,
		.hop_limit = 64,
		.sgid = craft_gid(URXE_NET_IPV4, 2),
		.dgid = craft_gid(URXE_NET_IPV4, 1),
		.opcode = URXE_OP_SEND_ONLY,
		.ack_req = true,
		.pkey = 0xffff,
		.dest_qpn = QPN,
		.psn = PSN,
	};

	frame_length = craft_frame(frame, &p);
}

/* When the peer learns that its message has arrived, the program can already find it. */
static void check_run(void (*run)(uint64_t now))
{
	receive_message();
	adapter_lock();
	run(1);
	adapter_unlock();
	assert_int_equal(acks, 1);
	assert_int_equal(visible, 1);
}

static void a_completion_is_visible_before_the_peer_gets_its_ack(void **state)
{
	(void)state;
	check_run(engine_run);
}

static void a_poll_shows_a_completion_before_the_peer_gets_its_ack(void **state)
{
	(void)state;
	check_run(engine_poll);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_completion_is_visible_before_the_peer_gets_its_ack),
		CASE(a_poll_shows_a_completion_before_the_peer_gets_its_ack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
