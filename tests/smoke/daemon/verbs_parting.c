/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_parting RUN_DIR destroys, resets or fails a QP soon after its peer repeated a message. This
 * program plays the peer frame by frame, as if it had lost all ACKs. The QP must send a last ACK
 * before it stops answering.
 */
#include <err.h>
#include <errno.h>

#include "loop.h"
#include "raw.h"

#define RC_SEND_ONLY 0x04
#define RC_ACK       0x11
#define PATIENCE_MS  60000
#define SIZE         64

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static uint8_t memory[SIZE];

static void check(int rc, const char *what)
{
	errno = rc;
	if (rc)
		err(1, "%s", what);
}

static void destroy(struct side *side)
{
	check(ibv_destroy_qp(side->qp), "ibv_destroy_qp");
	side->qp = NULL;
}

static void modify(struct side *side, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	check(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

static void reset(struct side *side)
{
	modify(side, IBV_QPS_RESET);
}

static void fail_qp(struct side *side)
{
	modify(side, IBV_QPS_ERR);
}

static const struct parting {
	const char *name;
	void (*run)(struct side *side);
} partings[] = {
	{"destroyed", destroy},
	{"reset", reset},
	{"failed", fail_qp},
};

static void open_side(struct side *side)
{
	side->context = loop_open();
	side->pd = ibv_alloc_pd(side->context);
	side->cq = ibv_create_cq(side->context, 1, NULL, NULL, 0);
	side->mr = side->pd ? ibv_reg_mr(side->pd, memory, SIZE, LOOP_ACCESS) : NULL;
	if (!side->cq || !side->mr)
		err(1, "cannot open a side");
}

static void close_side(struct side *side)
{
	check(ibv_dereg_mr(side->mr), "ibv_dereg_mr");
	check(ibv_destroy_cq(side->cq), "ibv_destroy_cq");
	check(ibv_dealloc_pd(side->pd), "ibv_dealloc_pd");
	ibv_close_device(side->context);
}

static void connect_side(struct side *side, uint32_t peer)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_sge sge = {(uintptr_t)memory, SIZE, side->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	side->qp = ibv_create_qp(side->pd, &init);
	if (!side->qp)
		err(1, "ibv_create_qp");
	loop_connect(side->qp, peer);
	check(ibv_post_recv(side->qp, &wr, &bad), "ibv_post_recv");
}

static void send_message(struct raw *peer, uint32_t dest_qpn)
{
	static const uint8_t payload[SIZE];
	struct urxe_packet p = raw_packet(peer);

	p.opcode = RC_SEND_ONLY;
	p.ack_req = true;
	p.dest_qpn = dest_qpn;
	p.payload = payload;
	p.payload_len = sizeof(payload);
	raw_send(peer, &p);
}

static void expect_ack(struct raw *peer, const char *when)
{
	uint8_t frame[CRAFT_MAX];
	struct urxe_packet p;
	uint32_t len;

	do {
		len = raw_receive(peer, frame, PATIENCE_MS);
		if (!len)
			errx(1, "no acknowledgement %s", when);
	} while (urxe_packet_parse(&p, frame, len) != URXE_DROP_NONE || p.opcode != RC_ACK);
}

static void check_last_ack(struct side *side, struct raw *peer, const struct parting *parting)
{
	const struct urxe_packet to = raw_packet(peer);
	struct ibv_wc wc;

	connect_side(side, peer->who.qpn_first);
	check(-vnic_driver_register(peer->drv, peer->who.qpn_first, to.dgid.raw, side->qp->qp_num),
	      "register");
	send_message(peer, side->qp->qp_num);
	expect_ack(peer, "of the message");
	send_message(peer, side->qp->qp_num);
	expect_ack(peer, "of the message that came again");
	parting->run(side);
	expect_ack(peer, parting->name);
	while (!ibv_poll_cq(side->cq, 1, &wc))
		;
	if (side->qp)
		destroy(side);
}

int main(int argc, char **argv)
{
	struct side side = {0};
	struct raw peer;

	if (argc != 2)
		errx(2, "usage: verbs_parting RUN_DIR");
	raw_open(&peer, argv[1]);
	open_side(&side);
	for (size_t i = 0; i < sizeof(partings) / sizeof(partings[0]); i++)
		check_last_ack(&side, &peer, &partings[i]);
	close_side(&side);
	raw_close(&peer);
	return 0;
}
