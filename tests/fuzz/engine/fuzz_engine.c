/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A script for two engines: work requests, packets of a hostile peer with a right ICRC, attributes,
 * keys, a bad cable, time, and moves to another engine. Only writable memory may change, each
 * request completes at most once and in order, no request waits for ever, no timer spins, and the
 * counters add up.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/cong.h>
#include <rxe/opcode.h>

#include "craft.h"
#include "ledger.h"
#include "move.h"
#include "pair.h"
#include "require.h"
#include "script.h"
#include "vault.h"

#define MAX_INPUT 4096
#define MEM_SIZE  65536
#define CONNS     4
#define WINDOWS   3
#define US        1000ull
#define AGES      (1000000000ull * 1000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One end of a connection, and its outstanding requests. */
struct side {
	struct endpoint end; /* first: its first member is the QP's context */
	struct fuzz *fuzz;
	struct ledger_queue send;
	struct ledger_queue recv; /* unused with a SRQ */
	uint8_t refills;          /* number of receives that the next refill callbacks post */
};

struct fuzz {
	struct script in;
	struct pair *pair;
	struct node_queue srq_context;
	struct urxe_rq *srq;
	struct ledger_queue srq_queue;
	struct vault vault[2];
	struct urxe_mw *mw[2][WINDOWS]; /* NULL: not allocated */
	struct conn_attr conn[CONNS];
	struct side side[CONNS][2];
	struct ledger ledger;
	uint64_t injected[2]; /* frames that did not come by the cable */
};

/* Big-endian, which the corpus requires. */
static uint16_t next16(struct script *in)
{
	uint16_t high = script_get8(in);

	return (uint16_t)(high << 8 | script_get8(in));
}

static uint32_t next32(struct script *in)
{
	uint32_t high = next16(in);

	return high << 16 | next16(in);
}

static uint64_t next64(struct script *in)
{
	uint64_t high = next32(in);

	return high << 32 | next32(in);
}

/* Mostly a small number, sometimes any number, to be near limits and far from them. */
static uint32_t next_size(struct script *in)
{
	uint8_t kind = script_get8(in);

	if (kind < 96)
		return kind;
	return kind < 200 ? kind * 29u : kind < 250 ? next16(in) : next32(in);
}

/* The connection and the end of a step, and its flags. */
struct where {
	unsigned conn, side;
	uint8_t flags; /* the upper five bits of a byte */
	struct side *at;
};

static struct where next_where(struct fuzz *f)
{
	uint8_t byte = script_get8(&f->in);
	struct where w = {.conn = byte / 2 % CONNS, .side = byte & 1, .flags = byte & 0xf8};

	w.at = &f->side[w.conn][w.side];
	return w;
}

/* --- Keys and addresses, mostly valid */

static uint32_t window_key(struct fuzz *f, unsigned side)
{
	struct urxe_mw *mw = f->mw[side][script_get8(&f->in) % WINDOWS];

	return mw ? urxe_mw_key(mw) : 0;
}

static uint32_t some_key(struct fuzz *f, unsigned side)
{
	uint8_t kind = script_get8(&f->in);

	if (kind < 128)
		return f->pair->node[side]->key;
	if (kind < 176)
		return vault_key(&f->vault[side], kind % VAULT_REGIONS);
	if (kind < 240)
		return window_key(f, side);
	return next32(&f->in);
}

static uint64_t some_address(struct fuzz *f, unsigned side)
{
	uint8_t kind = script_get8(&f->in);

	if (kind < 144)
		return f->pair->node[side]->iova + next16(&f->in);
	if (kind < 216)
		return vault_address(&f->vault[side], kind % VAULT_REGIONS) + next16(&f->in) % 1100;
	if (kind < 240)
		return next16(&f->in);
	return next64(&f->in);
}

/* A key, and an address that is mostly valid for the key. */
struct target {
	uint32_t key;
	uint64_t addr;
};

static struct target some_target(struct fuzz *f, unsigned side)
{
	const struct vault *vault = &f->vault[side];
	uint8_t kind = script_get8(&f->in);
	enum vault_region region = kind % VAULT_REGIONS;
	struct target target = {.addr = vault_address(vault, region)};

	if (kind < 96)
		return (struct target){f->pair->node[side]->key,
				       f->pair->node[side]->iova + next16(&f->in)};
	if (kind >= 240) {
		target.key = some_key(f, side);
		target.addr = some_address(f, side);
		return target;
	}
	target.key = kind < 176 ? vault_key(vault, region) : window_key(f, side);
	if (kind >= 224) /* a zero-based window */
		target.addr = 0;
	target.addr += next16(&f->in) % (VAULT_PIECE + 32);
	return target;
}

static uint32_t some_segments(struct fuzz *f, unsigned side, struct urxe_seg segs[URXE_MAX_SGE + 1])
{
	uint32_t n = script_get8(&f->in) % 12;

	for (uint32_t i = 0; i < n; i++) {
		struct target target = some_target(f, side);

		segs[i] = (struct urxe_seg){target.addr, next_size(&f->in), target.key};
	}
	return n;
}

/* Multicast groups, and one unicast address. */
static struct urxe_gid some_group(struct fuzz *f)
{
	static const struct urxe_gid groups[] = {
		{{[10] = 0xff, 0xff, 239, 1, 2, 3}},
		{{0xff, 0x0e, [15] = 1}},
		{{[10] = 0xff, 0xff, 224, 0, 0, 1}},
		{{0x20, 0x01, [15] = 1}},
	};

	return groups[script_get8(&f->in) % 4];
}

/* --- Completions */

static void drain(struct fuzz *f)
{
	for (unsigned side = 0; side < 2; side++) {
		struct node *node = f->pair->node[side];
		struct urxe_wc wc;

		node->n_persisted = 0;
		while (node_poll(&node->send_cq, &wc))
			ledger_complete(&f->ledger, &wc);
		while (node_poll(&node->recv_cq, &wc))
			ledger_complete(&f->ledger, &wc);
	}
}

/* --- Packets */

/* A payload reference of any length, in one piece or two, with a right or wrong number of packets.
 */
static struct urxe_reference any_reference(const struct fuzz *f, unsigned side, uint32_t len)
{
	static const uint8_t payload[URXE_REFERENCE_MAX];
	static struct urxe_reference_piece pieces[2];
	uint32_t length = len * f->injected[side] % URXE_REFERENCE_MAX;

	for (int i = 0; i < 2; i++)
		pieces[i] = (struct urxe_reference_piece){(uintptr_t)payload,
							  i ? length - length / 3 : length / 3};
	return (struct urxe_reference){
		.address = (uintptr_t)payload,
		.length = length,
		.packets = length / 1024 + f->injected[side] % 3,
		.n_pieces = f->injected[side] % 8 ? 0 : 2,
		.sender = f->pair->node[!side],
		.pieces = (const uint8_t *)pieces,
	};
}

static void input_frame(struct fuzz *f, unsigned side, uint8_t *data, uint32_t len)
{
	/* A copy of the exact size, so that a sanitizer detects reads beyond its end. */
	uint8_t *copy = malloc(len ? len : 1);
	struct urxe_frame frame = {copy, len, len};

	require(copy);
	memcpy(copy, data, len);
	if (++f->injected[side] % 4 == 0)
		frame.reference = any_reference(f, side, len);
	urxe_input(f->pair->node[side]->dev, f->pair->now, &frame, 1);
	free(copy);
}

static struct urxe_packet packet_to(struct fuzz *f, const struct where *w)
{
	const struct conn_attr *attr = &f->conn[w->conn];
	struct urxe_qp_attr qp;
	struct urxe_qp_init init;
	uint8_t flags = script_get8(&f->in);
	struct urxe_packet p = {
		.net = attr->net,
		.hop_limit = 64,
		.sgid = craft_gid(attr->net, w->side ? 1 : 2),
		.dgid = craft_gid(attr->net, w->side ? 2 : 1),
		.opcode = script_get8(&f->in),
		.solicited = flags & 1,
		.mig_req = flags & 2,
		.fecn = flags & 4,
		.becn = flags & 8,
		.ack_req = flags & 16,
		.pkey = 0xffff,
		.dest_qpn = w->at->end.qpn,
		.udp_sport = 0xc000,
		.traffic_class = w->flags >> 6, /* ECN */
		.has_vlan = w->flags & 8 && w->flags & 16,
	};

	if (flags & 32 && flags & 64)
		p.pkey = next16(&f->in);
	urxe_qp_query(w->at->end.qp, &qp, &init);
	/* Near the expected PSN of a request or a response. */
	p.psn = (flags & 128 ? qp.sq_psn : qp.rq_psn) + (uint32_t)(int8_t)script_get8(&f->in) / 8;
	p.psn &= 0xffffff;
	p.deth.qkey = flags & 4 ? next32(&f->in) : attr->qkey;
	p.deth.src_qpn = f->side[w->conn][!w->side].end.qpn;
	if (p.has_vlan)
		p.vlan_tci = next16(&f->in);
	if (w->flags & 32 && attr->type == URXE_QPT_UD) {
		p.dgid = some_group(f);
		p.dest_qpn = flags & 8 ? p.dest_qpn : URXE_QPN_MULTICAST;
	}
	return p;
}

static void inject_packet(struct fuzz *f)
{
	static uint8_t payload[CRAFT_MAX];
	uint8_t data[CRAFT_MAX];
	struct where w = next_where(f);
	struct urxe_packet p = packet_to(f, &w);
	struct target target;

	target = some_target(f, w.side);
	p.reth.va = p.atomic.va = target.addr;
	p.reth.rkey = p.atomic.rkey = p.ieth_rkey = target.key;
	p.reth.length = next_size(&f->in);
	p.atomic.swap_add = p.atomic.compare = p.atomic_ack = next32(&f->in);
	p.aeth.syndrome = script_get8(&f->in);
	p.feth.placement = w.flags >> 3 & 15;
	p.feth.selectivity = w.flags >> 7;
	p.aeth.msn = script_get8(&f->in);
	p.payload = payload;
	p.payload_len = script_get8(&f->in) & 3 ? script_get8(&f->in) * 4u : next16(&f->in) % 4200u;
	if (urxe_opcodes[p.opcode].known && !(urxe_opcodes[p.opcode].flags & URXE_OPF_PAYLOAD))
		p.payload_len = 0;
	if (URXE_OPCODE_SERVICE(p.opcode) == URXE_SERVICE_CNP)
		p.payload_len = 16;
	p.pad = -p.payload_len & 3;
	input_frame(f, w.side, data, craft_frame(data, &p));
}

static void inject_bytes(struct fuzz *f)
{
	uint8_t data[256];
	uint32_t len = script_get8(&f->in);

	for (uint32_t i = 0; i < len; i++)
		data[i] = script_get8(&f->in);
	craft_seal(data, len);
	input_frame(f, len & 1, data, len);
}

static void change_cable(struct fuzz *f)
{
	struct link *link = &f->pair->link[script_get8(&f->in) & 1];

	link->faults.drop = script_get8(&f->in) / 256.0;
	link->faults.duplicate = script_get8(&f->in) / 512.0;
	link->faults.reorder = script_get8(&f->in) / 256.0;
	link->faults.corrupt = script_get8(&f->in) / 1024.0;
}

/* --- Work requests */

static struct urxe_mw_bind some_bind(struct fuzz *f, unsigned side)
{
	struct target target = some_target(f, side);
	struct urxe_mw_bind bind = {.mr_key = target.key, .addr = target.addr};

	bind.mw_key = window_key(f, side);
	bind.tag = script_get8(&f->in);
	bind.access = next16(&f->in);
	bind.length = next_size(&f->in);
	return bind;
}

static struct urxe_flush some_flush(struct fuzz *f)
{
	struct urxe_flush flush = {.placement = script_get8(&f->in) % 5};

	flush.selectivity = script_get8(&f->in) % 3;
	flush.length = next_size(&f->in);
	return flush;
}

static void post_send(struct fuzz *f, const struct where *w, struct urxe_send_wr *wr)
{
	uint64_t length = wr->flags & URXE_SEND_INLINE ? wr->inline_len : 0;

	for (uint32_t i = 0; i < wr->n_segs; i++)
		length += wr->segs[i].length;
	wr->wr_id = ledger_post_send(&f->ledger, &w->at->send, wr, f->conn[w->conn].sq_sig_all,
				     (uint32_t)length);
	if (urxe_post_send(w->at->end.qp, wr))
		ledger_refused(&f->ledger);
}

static void send_request(struct fuzz *f)
{
	static const uint8_t inline_data[URXE_MAX_INLINE + 256];
	struct where w = next_where(f);
	struct urxe_path path = conn_path(f->conn[w.conn].net, f->pair->node[!w.side]);
	struct urxe_seg segs[URXE_MAX_SGE + 1];
	struct target target;
	struct urxe_send_wr wr = {
		.segs = segs,
		.inline_data = inline_data,
		.path = w.flags & 128 ? NULL : &path,
		.remote_qpn = f->side[w.conn][!w.side].end.qpn,
		.remote_qkey = f->conn[w.conn].qkey,
	};

	wr.opcode = script_get8(&f->in) % 16;
	wr.flags = script_get8(&f->in) % 16;
	wr.inline_len = script_get8(&f->in) * 3u;
	wr.compare_add = script_get8(&f->in);
	target = some_target(f, !w.side);
	wr.remote_addr = target.addr;
	wr.rkey = target.key;
	if (wr.flags & URXE_SEND_INLINE)
		wr.n_segs = 0;
	else
		wr.n_segs = some_segments(f, w.side, segs);
	if (w.flags & 64)
		path.sgid_index = script_get8(&f->in);
	if (w.flags & 32) {
		path.dgid = some_group(f);
		path.sl = script_get8(&f->in) & 7;
		wr.remote_qpn = URXE_QPN_MULTICAST;
	}
	if (wr.opcode == URXE_WR_FLUSH)
		wr.flush = some_flush(f);
	if (wr.opcode == URXE_WR_BIND_MW)
		wr.bind = some_bind(f, w.side);
	wr.invalidate_key =
		wr.opcode == URXE_WR_LOCAL_INV ? some_key(f, w.side) : window_key(f, !w.side);
	post_send(f, &w, &wr);
}

static void post_recv(struct fuzz *f, struct side *at, unsigned n_segs, struct urxe_seg *segs)
{
	bool shared = at->end.rq == f->srq;
	struct urxe_recv_wr wr = {
		.wr_id = ledger_post(&f->ledger, shared ? &f->srq_queue : &at->recv),
		.segs = segs,
		.n_segs = n_segs,
	};

	if (urxe_post_recv(at->end.rq, &wr))
		ledger_refused(&f->ledger);
}

static void recv_request(struct fuzz *f)
{
	struct where w = next_where(f);
	struct urxe_seg segs[URXE_MAX_SGE + 1];
	uint32_t n = some_segments(f, w.side, segs);

	w.at->refills = w.flags >> 6;
	post_recv(f, w.at, n, segs);
}

/* The engine has used up the receives; the callback may post more. */
static void on_refill(struct node_queue *queue)
{
	struct side *at = queue->arg;
	struct urxe_seg seg = node_seg(queue->node, 256, 4096);

	if (!at->refills || at->fuzz->ledger.n == LEDGER_MAX)
		return;
	at->refills--;
	post_recv(at->fuzz, at, 1, &seg);
}

/* --- Queue pairs, keys and tables */

static void modify(struct fuzz *f)
{
	struct where w = next_where(f);
	struct side *peer = &f->side[w.conn][!w.side];
	struct urxe_qp_attr attr =
		conn_qp_attr(&f->conn[w.conn], w.side, peer->end.node, peer->end.qpn);
	uint32_t mask;

	attr.state = script_get8(&f->in) % (URXE_QPS_COUNT + 1);
	mask = w.flags & 64 ? next32(&f->in) : conn_mask(f->conn[w.conn].type, attr.state);
	if (w.flags & 128) {
		attr.path_mtu = script_get8(&f->in);
		attr.max_dest_rd_atomic = script_get8(&f->in);
		attr.max_rd_atomic = script_get8(&f->in);
		attr.rq_psn = next32(&f->in);
		attr.timeout = script_get8(&f->in) % 33;
		attr.retry_cnt = script_get8(&f->in) % 9;
		attr.min_rnr_timer = script_get8(&f->in) % 33;
		attr.rate_limit = next32(&f->in);
		attr.pkey_index = script_get8(&f->in);
		attr.access = next16(&f->in);
		attr.en_sqd_async_notify = true;
	}
	if (urxe_qp_modify(w.at->end.qp, f->pair->now, &attr, mask) || !(mask & URXE_QP_STATE) ||
	    attr.state != URXE_QPS_RESET)
		return;
	drain(f);
	ledger_forget(&w.at->send);
	ledger_forget(&w.at->recv);
}

static void open_side(struct fuzz *f, unsigned conn, unsigned side)
{
	struct side *at = &f->side[conn][side];

	conn_create(f->pair, &f->conn[conn], side, &at->end);
	at->end.queue.refill = on_refill;
	at->end.queue.arg = at;
	ledger_restart(&at->send, at->end.qpn);
	ledger_restart(&at->recv, at->end.qpn);
}

/* Brings the QP up as far as the device's tables permit. */
static void bring_up(struct fuzz *f, const struct where *w)
{
	const struct conn_attr *conn = &f->conn[w->conn];
	const struct endpoint *peer = &f->side[w->conn][!w->side].end;
	struct urxe_qp_attr attr = conn_qp_attr(conn, w->side, peer->node, peer->qpn);

	for (attr.state = URXE_QPS_INIT; attr.state <= URXE_QPS_RTS; attr.state++)
		urxe_qp_modify(w->at->end.qp, f->pair->now, &attr,
			       conn_mask(conn->type, attr.state));
}

static void replace_qp(struct fuzz *f)
{
	struct where w = next_where(f);

	urxe_qp_destroy(w.at->end.qp);
	drain(f);
	open_side(f, w.conn, w.side);
	if (w.flags & 64)
		bring_up(f, &w);
}

static void toggle_window(struct fuzz *f)
{
	uint8_t byte = script_get8(&f->in);
	unsigned side = byte & 1;
	struct urxe_mw **mw = &f->mw[side][byte / 2 % WINDOWS];
	const struct urxe_mw_attr attr = {
		.pd = NODE_PD + (byte > 240),
		.type = byte & 64 ? URXE_MW_TYPE_1 : URXE_MW_TYPE_2,
	};

	if (*mw) {
		urxe_mw_dealloc(*mw);
		*mw = NULL;
	} else {
		require(urxe_mw_alloc(f->pair->node[side]->dev, &attr, mw) == 0);
	}
}

static void change_group(struct fuzz *f)
{
	struct where w = next_where(f);
	struct urxe_gid group = some_group(f);

	if (w.flags & 64)
		urxe_mcast_detach(w.at->end.qp, &group);
	else
		urxe_mcast_attach(w.at->end.qp, &group);
}

static void restore_gids(struct fuzz *f, unsigned side)
{
	for (int net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++) {
		struct urxe_gid gid = craft_gid(net, (uint8_t)(side + 1));

		urxe_gid_set(f->pair->node[side]->dev, NODE_SGID(net), &gid,
			     net == URXE_NET_ROCEV1);
	}
}

static void change_tables(struct fuzz *f)
{
	uint8_t byte = script_get8(&f->in);
	uint8_t n = script_get8(&f->in);
	struct urxe_dev *dev = f->pair->node[byte & 1]->dev;

	switch (byte / 2 % 8) {
	case 0: urxe_pkey_set(dev, n % (URXE_MAX_PKEYS + 1), next16(&f->in)); break;
	case 1: urxe_srq_set_limit(f->srq, n); break;
	case 2: urxe_srq_resize(f->srq, n % 33); break;
	case 3: urxe_gid_set_vlan(dev, n % (URXE_MAX_GIDS + 1), next16(&f->in)); break;
	case 4: urxe_gid_set(dev, NODE_SGID(n % 3), NULL, false); break;
	case 5: restore_gids(f, byte & 1); break;
	case 6: urxe_cq_arm(f->pair->node[byte & 1]->send_cq.cq, byte & 128); break;
	default: urxe_cq_arm(f->pair->node[byte & 1]->recv_cq.cq, byte & 128); break;
	}
}

/* --- Moves */

/* A node that moves, and the keys of its objects. */
struct mover {
	struct fuzz *fuzz;
	unsigned side;
	uint32_t region[VAULT_REGIONS], window[WINDOWS];
};

static void restored_qp(struct mover *m, struct urxe_qp *qp)
{
	for (unsigned i = 0; i < CONNS; i++) {
		struct endpoint *end = &m->fuzz->side[i][m->side].end;

		if (end->qpn != urxe_qp_qpn(qp))
			continue;
		end->qp = qp;
		if (urxe_qp_rq(qp))
			end->rq = urxe_qp_rq(qp);
	}
}

static void restored_srq(struct mover *m, struct urxe_rq *srq)
{
	struct fuzz *f = m->fuzz;

	f->srq = srq;
	for (unsigned i = 0; i < CONNS; i++)
		if (f->conn[i].srq[m->side])
			f->side[i][m->side].end.rq = f->conn[i].srq[m->side] = srq;
}

static void on_restored(void *arg, const struct urxe_state_object *object)
{
	struct mover *m = arg;
	struct fuzz *f = m->fuzz;

	if (object->kind == URXE_STATE_QP)
		restored_qp(m, object->qp);
	if (object->kind == URXE_STATE_SRQ)
		restored_srq(m, object->srq);
	for (unsigned i = 0; object->kind == URXE_STATE_MR && i < VAULT_REGIONS; i++)
		if (m->region[i] == object->id)
			f->vault[m->side].mr[i] = object->mr;
	for (unsigned i = 0; object->kind == URXE_STATE_MW && i < WINDOWS; i++)
		if (m->window[i] == object->id)
			f->mw[m->side][i] = object->mw;
}

/* Saves a device, and restores it in the same memory. */
static void move(struct fuzz *f, unsigned side)
{
	struct node *node = f->pair->node[side];
	struct mover m = {.fuzz = f, .side = side};
	uint8_t *stream;
	size_t length;

	for (unsigned i = 0; i < VAULT_REGIONS; i++)
		m.region[i] = vault_key(&f->vault[side], i);
	for (unsigned i = 0; i < WINDOWS; i++)
		m.window[i] = f->mw[side][i] ? urxe_mw_key(f->mw[side][i]) : 0;
	move_save(node, f->pair->now, &stream, &length);
	urxe_dev_destroy(node->dev);
	node->old_mem = (uintptr_t)node->mem;
	require(move_restore(node, f->pair->now, stream, length, on_restored, &m) == 0);
	urxe_state_free(stream);
}

static void pass_time(struct fuzz *f)
{
	uint8_t kind = script_get8(&f->in);

	require(pair_run(f->pair, f->pair->now + (kind < 200 ? kind * US : kind * 1000 * US)) !=
		PAIR_STUCK);
}

/* --- Checks at the end */

/* When both engines are idle, a QP with a timeout that may send can have no outstanding request. */
static void check_no_request_waits(const struct side *at)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_qp_query(at->end.qp, &attr, &init);
	if (attr.state == URXE_QPS_RTS && (attr.timeout || init.type != URXE_QPT_RC))
		require(urxe_sq_retired(at->end.qp) == at->send.posted);
}

static void flush(struct fuzz *f, struct side *at)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};

	at->refills = 0;
	require(urxe_qp_modify(at->end.qp, f->pair->now, &attr, URXE_QP_STATE) == 0);
	require(urxe_sq_retired(at->end.qp) == at->send.posted);
	if (at->end.rq != f->srq)
		require(urxe_rq_retired(at->end.rq) == at->recv.posted);
}

static void check_flushed(struct fuzz *f, struct side *at)
{
	const struct node *node = at->end.node;

	/* A CQ overflow has lost completions. */
	if (urxe_dev_counters(node->dev)->event[URXE_EVENT_CQ_OVERFLOW])
		return;
	ledger_check_flushed(&f->ledger, &at->send);
	ledger_check_flushed(&f->ledger, &at->recv);
}

static void check_counters(struct fuzz *f, unsigned side)
{
	const struct urxe_counters *c = urxe_dev_counters(f->pair->node[side]->dev);
	const struct link *from = &f->pair->link[!side], *to = &f->pair->link[side];
	uint64_t arrived = f->injected[side] + from->sent - from->dropped + from->duplicated;
	uint64_t drops = 0;

	for (unsigned i = 0; i < URXE_DROP_COUNT; i++)
		drops += c->drop[i];
	require(c->drop[URXE_DROP_NONE] == 0);
	require(c->event[URXE_EVENT_RX_PACKETS] <= arrived);
	require(c->event[URXE_EVENT_RX_PACKETS] + drops >= arrived);
	require(c->event[URXE_EVENT_TX_PACKETS] == to->sent);
	require(c->event[URXE_EVENT_RETRANSMIT] <= to->sent);
	require(c->event[URXE_EVENT_CNP_SENT] <= c->event[URXE_EVENT_ECN_MARKED]);
}

/* On a good cable without new requests, both engines must become idle. */
static void run_until_idle(struct fuzz *f)
{
	enum pair_result result;

	for (unsigned side = 0; side < 2; side++)
		f->pair->link[side].faults = (struct link_faults){0};
	result = pair_run(f->pair, f->pair->now + AGES);
	drain(f);
	require(result == PAIR_IDLE);
	for (unsigned i = 0; i < 2 * CONNS; i++)
		check_no_request_waits(&f->side[i / 2][i % 2]);
}

static void finish(struct fuzz *f)
{
	for (unsigned i = 0; i < 2 * CONNS; i++)
		flush(f, &f->side[i / 2][i % 2]);
	require(pair_run(f->pair, f->pair->now + AGES) == PAIR_IDLE);
	drain(f);
	for (unsigned i = 0; i < 2 * CONNS; i++)
		check_flushed(f, &f->side[i / 2][i % 2]);
	for (unsigned side = 0; side < 2; side++) {
		check_counters(f, side);
		vault_check(&f->vault[side]);
	}
}

/* --- */

static void create_conns(struct fuzz *f)
{
	static const uint8_t types[CONNS] = {URXE_QPT_RC, URXE_QPT_UC, URXE_QPT_UD, URXE_QPT_RC};

	for (unsigned i = 0; i < CONNS; i++) {
		f->conn[i] = conn_default(types[i]);
		f->conn[i].net = i % 3;
		f->conn[i].path_mtu = URXE_MTU_256 + i;
		f->conn[i].timeout = 4;
		f->conn[i].rnr_retry = 3;
		f->conn[i].sq_sig_all = i == 3;
		f->conn[i].access |= URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT;
		if (i == 3)
			f->conn[i].srq[1] = f->srq;
		for (unsigned side = 0; side < 2; side++) {
			f->side[i][side].fuzz = f;
			f->side[i][side].send.send = true;
			open_side(f, i, side);
		}
		for (unsigned side = 0; side < 2; side++)
			conn_bring_up(f->pair, &f->conn[i], side, &f->side[i][side].end,
				      &f->side[i][!side].end);
	}
}

static void fuzz_open(struct fuzz *f)
{
	uint8_t options = script_get8(&f->in);
	const struct pair_attr pair = {
		.seed = 1,
		.mem_size = MEM_SIZE,
		.durable = true,
		.max_packets = options & 1 ? 8 : 0,
		.go_back_n = {options & 2, options & 4},
		.congestion = options & 8 ? URXE_CONGESTION_NONE : URXE_CONGESTION_DCQCN,
		.link_bps = options & 16 ? 1000000000 : 0,
	};
	const struct urxe_rq_attr srq = {
		.ctx = &f->srq_context, .pd = NODE_PD, .max_wr = 16, .max_sge = 12};

	f->pair = pair_create(&pair);
	f->srq_context.node = f->pair->node[1];
	f->srq_queue.shared = true;
	require(urxe_srq_create(f->pair->node[1]->dev, &srq, &f->srq) == 0);
	for (unsigned side = 0; side < 2; side++) {
		if (options & 32)
			f->pair->node[side]->recv_cq.depth = f->pair->node[side]->send_cq.depth = 8;
		vault_open(&f->vault[side], f->pair->node[side]);
	}
	create_conns(f);
}

static void change_world(struct fuzz *f)
{
	uint8_t kind = script_get8(&f->in);

	if (kind & 1)
		change_tables(f);
	else if (kind < 192)
		change_cable(f);
	else
		move(f, kind >> 1 & 1);
}

static void step(struct fuzz *f)
{
	switch (script_get8(&f->in) % 20) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4: inject_packet(f); break;
	case 5:
	case 6:
	case 7:
	case 8: send_request(f); break;
	case 9:
	case 10: recv_request(f); break;
	case 11:
	case 12: pass_time(f); break;
	case 13: inject_bytes(f); break;
	case 14: modify(f); break;
	case 15: vault_toggle(&f->vault[script_get8(&f->in) & 1]); break;
	case 16: toggle_window(f); break;
	case 17: replace_qp(f); break;
	case 18: change_group(f); break;
	default: change_world(f); break;
	}
	drain(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;

	if (size > MAX_INPUT)
		return 0;
	f = (struct fuzz){.in = {data, size}};
	fuzz_open(&f);
	while (f.in.left)
		step(&f);
	run_until_idle(&f);
	finish(&f);
	pair_destroy(f.pair);
	return 0;
}
