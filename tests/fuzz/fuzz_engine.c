/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A byte stream that drives two engines: work requests, packets of a hostile
 * peer with a right ICRC, attributes, time. Whatever it says, nothing crashes,
 * no deadline spins, and no request completes more than once.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/opcode.h>

#include "craft.h"
#include "pair.h"
#include "require.h"

#define MAX_INPUT 4096
#define MEM_SIZE  65536
#define CONNS     4
#define US        1000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
};

struct fuzz {
	struct input in;
	struct pair *pair;
	struct node_queue srq_queue;
	struct urxe_rq *srq;
	struct urxe_mr *mr; /* one that comes and goes on node 1; NULL = gone */
	struct conn_attr conn[CONNS];
	struct endpoint end[CONNS][2];
	uint64_t posted[2][2]; /* [side][send, receive] */
};

static uint8_t next8(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static uint16_t next16(struct input *in)
{
	return (uint16_t)(next8(in) << 8 | next8(in));
}

static uint32_t next32(struct input *in)
{
	return (uint32_t)next16(in) << 16 | next16(in);
}

/* Mostly a small number, now and then any: what is near a limit, and what is far. */
static uint32_t next_size(struct input *in)
{
	uint8_t kind = next8(in);

	return kind < 200 ? kind * 29u : kind < 250 ? next16(in) : next32(in);
}

static uint32_t some_key(struct fuzz *f, unsigned side)
{
	uint8_t kind = next8(&f->in);

	if (kind < 200)
		return f->pair->node[side]->key;
	if (kind < 230 && f->mr)
		return urxe_mr_key(f->mr);
	return next32(&f->in);
}

static uint64_t some_address(struct fuzz *f, unsigned side)
{
	uint8_t kind = next8(&f->in);

	if (kind < 220)
		return f->pair->node[side]->iova + next16(&f->in);
	return (uint64_t)next32(&f->in) << 32 | next32(&f->in);
}

static void input_frame(struct fuzz *f, unsigned side, uint8_t *data, uint32_t len)
{
	struct urxe_frame frame = {data, len, len};

	urxe_input(f->pair->node[side]->dev, f->pair->now, &frame, 1);
}

static struct urxe_packet packet_to(struct fuzz *f, unsigned side, unsigned conn)
{
	const struct conn_attr *attr = &f->conn[conn];
	struct urxe_qp_attr qp;
	struct urxe_qp_init init;
	uint8_t flags = next8(&f->in);
	struct urxe_packet p = {
		.net = attr->net,
		.hop_limit = 64,
		.sgid = craft_gid(attr->net, side ? 1 : 2),
		.dgid = craft_gid(attr->net, side ? 2 : 1),
		.opcode = next8(&f->in),
		.solicited = flags & 1,
		.mig_req = flags & 2,
		.fecn = flags & 4,
		.becn = flags & 8,
		.ack_req = flags & 16,
		.pkey = flags & 32 && flags & 64 ? next16(&f->in) : 0xffff,
		.dest_qpn = f->end[conn][side].qpn,
		.udp_sport = 0xc000,
	};

	urxe_qp_query(f->end[conn][side].qp, &qp, &init);
	/* Around what is expected of a request or a response. */
	p.psn = (flags & 128 ? qp.sq_psn : qp.rq_psn) + (uint32_t)(int8_t)next8(&f->in) / 8;
	p.psn &= 0xffffff;
	p.deth.qkey = flags & 4 ? next32(&f->in) : attr->qkey;
	p.deth.src_qpn = f->end[conn][!side].qpn;
	return p;
}

static void inject_packet(struct fuzz *f)
{
	static uint8_t payload[CRAFT_MAX];
	uint8_t data[CRAFT_MAX];
	uint8_t where = next8(&f->in);
	unsigned side = where & 1;
	struct urxe_packet p = packet_to(f, side, where / 2 % CONNS);

	p.reth.va = p.atomic.va = some_address(f, side);
	p.reth.rkey = p.atomic.rkey = some_key(f, side);
	p.reth.length = next_size(&f->in);
	p.atomic.swap_add = p.atomic.compare = p.atomic_ack = next32(&f->in);
	p.aeth.syndrome = next8(&f->in);
	p.aeth.msn = next8(&f->in);
	p.payload = payload;
	p.payload_len = next8(&f->in) & 3 ? next8(&f->in) * 4u : next16(&f->in) % 4200u;
	if (urxe_opcodes[p.opcode].known && !(urxe_opcodes[p.opcode].flags & URXE_OPF_PAYLOAD))
		p.payload_len = 0;
	p.pad = -p.payload_len & 3;
	input_frame(f, side, data, craft_frame(data, &p));
}

static void inject_bytes(struct fuzz *f)
{
	uint8_t data[256];
	uint32_t len = next8(&f->in);

	for (uint32_t i = 0; i < len; i++)
		data[i] = next8(&f->in);
	craft_seal(data, len);
	input_frame(f, len & 1, data, len);
}

static uint32_t some_segments(struct fuzz *f, unsigned side, struct urxe_seg segs[URXE_MAX_SGE + 1])
{
	uint32_t n = next8(&f->in) % 12;

	for (uint32_t i = 0; i < n; i++)
		segs[i] = (struct urxe_seg){some_address(f, side), next_size(&f->in),
					    some_key(f, side)};
	return n;
}

static void send_request(struct fuzz *f)
{
	uint8_t where = next8(&f->in);
	unsigned side = where & 1, conn = where / 2 % CONNS;
	struct urxe_path path = conn_path(f->conn[conn].net, f->pair->node[!side]);
	struct urxe_seg segs[URXE_MAX_SGE + 1];
	static const uint8_t inline_data[URXE_MAX_INLINE + 256];
	struct urxe_send_wr wr = {
		.opcode = next8(&f->in) % 9,
		.flags = next8(&f->in) % 16,
		.segs = segs,
		.inline_data = inline_data,
		.inline_len = next8(&f->in) * 3u,
		.remote_addr = some_address(f, !side),
		.rkey = some_key(f, !side),
		.compare_add = next8(&f->in),
		.path = where & 128 ? NULL : &path,
		.remote_qpn = f->end[conn][!side].qpn,
		.remote_qkey = f->conn[conn].qkey,
	};

	if (wr.flags & URXE_SEND_INLINE)
		wr.n_segs = 0;
	else
		wr.n_segs = some_segments(f, side, segs);
	path.sgid_index = where & 64 ? next8(&f->in) : path.sgid_index;
	wr.wr_id = f->posted[side][0];
	f->posted[side][0] += urxe_post_send(f->end[conn][side].qp, &wr) == 0;
}

static void recv_request(struct fuzz *f)
{
	uint8_t where = next8(&f->in);
	unsigned side = where & 1, conn = where / 2 % CONNS;
	struct urxe_seg segs[URXE_MAX_SGE + 1];
	struct urxe_recv_wr wr = {.segs = segs, .n_segs = some_segments(f, side, segs)};

	f->posted[side][1] += urxe_post_recv(f->end[conn][side].rq, &wr) == 0;
}

static void modify(struct fuzz *f)
{
	uint8_t where = next8(&f->in);
	unsigned side = where & 1, conn = where / 2 % CONNS;
	struct endpoint *end = &f->end[conn][side];
	struct urxe_qp_attr attr =
		conn_qp_attr(&f->conn[conn], side, f->pair->node[!side], f->end[conn][!side].qpn);
	uint32_t mask;

	attr.state = next8(&f->in) % (URXE_QPS_COUNT + 1);
	mask = where & 64 ? next32(&f->in) : conn_mask(f->conn[conn].type, attr.state);
	if (where & 128) {
		attr.path_mtu = next8(&f->in);
		attr.max_dest_rd_atomic = next8(&f->in);
		attr.rq_psn = next32(&f->in);
	}
	urxe_qp_modify(end->qp, f->pair->now, &attr, mask);
}

static void toggle_mr(struct fuzz *f)
{
	if (f->mr) {
		urxe_mr_dereg(f->mr);
		f->mr = NULL;
	} else {
		f->mr = node_reg(f->pair->node[1], NODE_PD, NODE_ACCESS, next8(&f->in) * 16u,
				 next8(&f->in) * 16u);
	}
}

static void replace_qp(struct fuzz *f)
{
	uint8_t where = next8(&f->in);
	unsigned side = where & 1, conn = where / 2 % CONNS;

	urxe_qp_destroy(f->end[conn][side].qp);
	conn_create(f->pair, &f->conn[conn], side, &f->end[conn][side]);
	conn_bring_up(f->pair, &f->conn[conn], side, &f->end[conn][side], &f->end[conn][!side]);
}

static void pass_time(struct fuzz *f)
{
	uint8_t kind = next8(&f->in);

	require(pair_run(f->pair, f->pair->now + (kind < 200 ? kind * US : kind * 1000 * US)) !=
		PAIR_STUCK);
}

/* Not more completions than requests, and none with a status or opcode that does not exist. */
static void check_completions(struct fuzz *f)
{
	for (unsigned side = 0; side < 2; side++) {
		struct node_cq *cqs[] = {&f->pair->node[side]->send_cq,
					 &f->pair->node[side]->recv_cq};

		for (unsigned i = 0; i < 2; i++) {
			struct urxe_wc wc;

			require(cqs[i]->tail <= f->posted[side][i]);
			while (node_poll(cqs[i], &wc))
				require(wc.status <= URXE_WC_RNR_RETRY_EXC_ERR &&
					(wc.status || wc.opcode <= URXE_WC_FETCH_ADD ||
					 (i == 1 && wc.opcode <= URXE_WC_RECV_RDMA_WITH_IMM)));
		}
	}
}

static void fuzz_open(struct fuzz *f)
{
	static const uint8_t types[CONNS] = {URXE_QPT_RC, URXE_QPT_UC, URXE_QPT_UD, URXE_QPT_RC};
	const struct urxe_rq_attr srq = {
		.ctx = &f->srq_queue, .pd = NODE_PD, .max_wr = 16, .max_sge = 4};

	f->pair = pair_create(&(struct pair_attr){.seed = 1, .mem_size = MEM_SIZE});
	f->srq_queue.node = f->pair->node[1];
	require(urxe_srq_create(f->pair->node[1]->dev, &srq, &f->srq) == 0);
	for (unsigned i = 0; i < CONNS; i++) {
		f->conn[i] = conn_default(types[i]);
		f->conn[i].net = i % 3;
		f->conn[i].path_mtu = URXE_MTU_256 + i;
		f->conn[i].timeout = 4;
		f->conn[i].rnr_retry = 3;
		if (i == 3)
			f->conn[i].srq[1] = f->srq;
		conn_open(f->pair, &f->conn[i], f->end[i]);
	}
}

static void step(struct fuzz *f)
{
	switch (next8(&f->in) % 12) {
	case 0:
	case 1:
	case 2:
	case 3: inject_packet(f); break;
	case 4:
	case 5: send_request(f); break;
	case 6: recv_request(f); break;
	case 7: pass_time(f); break;
	case 8: inject_bytes(f); break;
	case 9: modify(f); break;
	case 10: toggle_mr(f); break;
	default: replace_qp(f); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {.in = {data, data + size}};

	if (size > MAX_INPUT)
		return 0;
	fuzz_open(&f);
	while (f.in.at < f.in.end)
		step(&f);
	/* Left alone, the engines come to rest: every retry ends. */
	require(pair_run(f.pair, f.pair->now + 100 * 1000000 * US) != PAIR_STUCK);
	check_completions(&f);
	pair_destroy(f.pair);
	return 0;
}
