/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <err.h>
#include <errno.h>
#include <infiniband/verbs.h>

#include "draw.h"
#include "region.h"
#include "request.h"

#define LIST_MOST 6
/* A list of UC messages of this length and the marker fit the inbox of 512 packets, so that no
 * packet is lost. */
#define UC_MOST 65536
#define UD_MOST 1024 /* the path MTU */

/* A request, before it has addresses and keys. */
struct message {
	int qp;
	enum ibv_wr_opcode opcode;
	uint32_t length, value; /* value: immediate data and the like */
	enum damage damage;
	unsigned int flags;
};

#define PICK(list) ((list)[draw_below(sizeof(list) / sizeof((list)[0]))])

/* A window of the peer, which a message of that queue pair may invalidate; NULL: none. */
static const struct window *find_bound(const struct side *side, int qp)
{
	for (int i = 0; i < WINDOWS; i++)
		if (side->peer.windows[i].bound && side->peer.windows[i].qp == qp)
			return &side->peer.windows[i];
	return NULL;
}

static enum ibv_wr_opcode draw_rc_opcode(const struct side *side, int qp)
{
	static const enum ibv_wr_opcode often[] = {
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	static const enum ibv_wr_opcode of_windows[] = {
		IBV_WR_BIND_MW,
		IBV_WR_BIND_MW,
		IBV_WR_BIND_MW,
		IBV_WR_LOCAL_INV,
	};

	/* A responder with another key fails without an answer, and the sender after all retries.
	 */
	if (find_bound(side, qp) && draw_one_in(2))
		return IBV_WR_SEND_WITH_INV;
	/* librxe reads the address handle of any datagram, which these requests have not. */
	if (side->errors && !side->hca && qp != QP_UD && draw_one_in(4))
		return PICK(of_windows);
	return PICK(often);
}

static enum ibv_wr_opcode draw_opcode(const struct side *side, int qp)
{
	static const enum ibv_wr_opcode uc[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
	static const enum ibv_wr_opcode ud[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};
	enum ibv_qp_type type = side_qp_type(qp);

	/* The types UC and UD have not all opcodes. */
	if (type == IBV_QPT_RC || (side->errors && draw_one_in(12)))
		return draw_rc_opcode(side, qp);
	return type == IBV_QPT_UC ? PICK(uc) : PICK(ud);
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool has_no_segments(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

static uint32_t limit_length(const struct side *side, const struct message *m)
{
	enum ibv_qp_type type = side_qp_type(m->qp);

	if (has_no_segments(m->opcode))
		return 0;
	if (is_atomic(m->opcode))
		return m->damage == WRONG_SIZE ? 16 : 8;
	if (type == IBV_QPT_UC && !side->errors && m->length > UC_MOST)
		return UC_MOST;
	if (type == IBV_QPT_UD && m->length > UD_MOST && (!side->errors || !draw_one_in(12)))
		return m->value;
	return m->length;
}

static bool may_be_inline(const struct message *m)
{
	return m->length <= QP_INLINE && m->opcode != IBV_WR_RDMA_READ && !is_atomic(m->opcode) &&
	       !has_no_segments(m->opcode);
}

/* One that concerns the opcode. */
static enum damage draw_damage(const struct message *m)
{
	static const enum damage of_send[] = {LONG_INLINE, UNDAMAGED};
	static const enum damage of_datagram[] = {WRONG_KEY, LONG_INLINE};

	if (side_qp_type(m->qp) == IBV_QPT_UD)
		return PICK(of_datagram);
	if (is_atomic(m->opcode))
		return draw_below(LONG_INLINE);
	if (m->opcode == IBV_WR_RDMA_READ)
		return draw_below(UNALIGNED);
	if (m->opcode == IBV_WR_RDMA_WRITE || m->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		return draw_one_in(6) ? LONG_INLINE : draw_below(UNALIGNED);
	return PICK(of_send);
}

static struct message draw_message(const struct side *side, int qp)
{
	struct message m = {
		.qp = qp,
		.opcode = draw_opcode(side, qp),
		.length = draw_length(),
		.value = draw_below(1000),
		.damage = UNDAMAGED,
		.flags = (draw_one_in(4) ? IBV_SEND_FENCE : 0) |
			 (draw_one_in(4) ? IBV_SEND_SOLICITED : 0),
	};

	if (side->errors && draw_one_in(2))
		m.damage = draw_damage(&m);
	m.length = limit_length(side, &m);
	if (draw_one_in(4) && (m.damage == LONG_INLINE || may_be_inline(&m)))
		m.flags |= IBV_SEND_INLINE;
	return m;
}

/* --- Addresses and keys. */

static int make_segments(struct side *side, const struct message *m, struct ibv_sge *sges)
{
	bool answers = m->opcode == IBV_WR_RDMA_READ || is_atomic(m->opcode);
	int n;
	struct need need = {
		.half = answers ? DESTINATIONS : SOURCES,
		.pd = side_qp_pd(m->qp),
		.right = answers ? IBV_ACCESS_LOCAL_WRITE : 0,
		.length = m->length,
		.damage = side->errors ? draw_below(30) : UNDAMAGED,
	};

	if (has_no_segments(m->opcode))
		return 0;
	n = region_segments(side, sges, &need);
	if (is_atomic(m->opcode)) {
		n = 1;
		sges[0].length = m->length;
	}
	return n;
}

static int needed_right(enum ibv_wr_opcode opcode)
{
	if (is_atomic(opcode))
		return IBV_ACCESS_REMOTE_ATOMIC;
	return opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

static uint64_t find_remote(struct side *side, const struct message *m, uint32_t *rkey)
{
	const struct window *window = &side->peer.windows[draw_below(WINDOWS)];
	const struct region *region;
	struct need need = {
		.half = m->opcode == IBV_WR_RDMA_READ ? SOURCES : DESTINATIONS,
		.pd = side_qp_pd(m->qp),
		.right = needed_right(m->opcode),
		.length = m->length,
		.damage = m->damage,
	};
	uint32_t at = draw_below(1000);

	if (window->valid && window->length > m->length && draw_one_in(2)) {
		*rkey = window->rkey;
		return window->addr;
	}
	region = region_find(&side->peer, &need);
	*rkey = region ? region->rkey : 0xbad;
	if (!region)
		return side->peer.memory;
	if (m->damage == WRONG_ADDRESS)
		return draw_one_in(2) ? region->addr - 1
				      : region->addr + region->length - m->length + 1;
	return region->addr + (region->length > m->length + at ? at : 0);
}

static uint64_t make_remote(struct side *side, const struct message *m, uint32_t *rkey)
{
	uint64_t addr = find_remote(side, m, rkey);

	/* Not the low bits: a window whose last bind failed has the key of before. */
	if (m->damage == WRONG_KEY)
		*rkey ^= 1u << (4 + (m->value & 3));
	if (is_atomic(m->opcode) && m->damage != UNALIGNED)
		addr &= ~7ull;
	return addr;
}

static uint32_t draw_own_key(const struct side *side)
{
	return draw_one_in(2) ? side->own.windows[draw_below(WINDOWS)].rkey
			      : side->own.regions[draw_below(FIXED_REGION)].rkey;
}

static void address(struct side *side, const struct message *m, struct ibv_send_wr *wr)
{
	uint32_t rkey;
	uint64_t addr;

	if (m->opcode == IBV_WR_LOCAL_INV) {
		wr->invalidate_rkey = draw_own_key(side);
		region_invalidate_window(side, wr->invalidate_rkey);
		return;
	}
	if (m->opcode == IBV_WR_SEND_WITH_INV)
		wr->invalidate_rkey = find_bound(side, m->qp)->rkey;
	else
		wr->imm_data = m->value;
	addr = make_remote(side, m, &rkey);
	if (side_qp_type(m->qp) == IBV_QPT_UD) {
		wr->wr.ud.ah = side->ah;
		wr->wr.ud.remote_qpn = side->peer.qpns[m->qp];
		wr->wr.ud.remote_qkey = m->damage == WRONG_KEY ? QP_QKEY + 1 : QP_QKEY;
	} else if (is_atomic(m->opcode)) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = m->value & 1 ? 0 : 5;
		wr->wr.atomic.swap = 0x1111111111111111ull * (m->value & 15);
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
}

/* --- Posting. */

static int post_message(struct side *side, const struct message *m)
{
	struct ibv_sge sges[QP_SEGMENTS];
	struct ibv_send_wr *bad, wr = {
					 .wr_id = ++side->last_id,
					 .sg_list = sges,
					 .num_sge = make_segments(side, m, sges),
					 .opcode = m->opcode,
					 .send_flags = m->flags,
				 };
	int rc;

	address(side, m, &wr);
	rc = ibv_post_send(side->qps[m->qp], &wr, &bad);
	side_log(side,
		 "send %u posted to qp %d: opcode %d, flags %#x, %u bytes in %d segments, "
		 "damage %d: %d",
		 side->last_id, m->qp, m->opcode, m->flags, m->length, wr.num_sge, m->damage, rc);
	side->sends[m->qp] += !rc;
	return rc;
}

void request_post_empty(struct side *side, int qp)
{
	struct ibv_send_wr *bad, wr = {.wr_id = ++side->last_id, .opcode = IBV_WR_RDMA_WRITE};

	errno = ibv_post_send(side->qps[qp], &wr, &bad);
	if (errno)
		err(1, "ibv_post_send");
	side->sends[qp]++;
}

static int post_bind(struct side *side, int qp, struct ibv_mw *mw,
		     const struct ibv_mw_bind_info *info)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_mw_bind bind = {.wr_id = ++side->last_id, .bind_info = *info};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = side->last_id,
					 .opcode = IBV_WR_BIND_MW,
					 .bind_mw = {.mw = mw, .rkey = rkey, .bind_info = *info},
				 };
	int rc;

	if (mw->type == IBV_MW_TYPE_1)
		return ibv_bind_mw(side->qps[qp], mw, &bind);
	rc = ibv_post_send(side->qps[qp], &wr, &bad);
	if (!rc)
		mw->rkey = rkey;
	return rc;
}

static struct ibv_mw_bind_info draw_bind_info(struct side *side, const struct region *region)
{
	struct ibv_mw_bind_info info = {
		.mr = side->mrs[region - side->own.regions],
		.addr = region->addr + draw_below(1000),
		.length = draw_one_in(2) ? draw_below(5000) : draw_length(),
		.mw_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (draw_one_in(8))
		info.mw_access_flags = draw_below(REGION_ALL_RIGHTS + 1);
	return info;
}

static int bind_window(struct side *side, int qp)
{
	struct need need = {
		.half = DESTINATIONS,
		.pd = side_qp_pd(qp),
		.right = IBV_ACCESS_MW_BIND,
		.damage = draw_below(2 * UNDAMAGED),
	};
	const struct region *region = region_find(&side->own, &need);
	int i = (int)draw_below(WINDOWS), rc;
	struct ibv_mw_bind_info info;

	if (!side->mws[i] || !region)
		return 0;
	info = draw_bind_info(side, region);
	rc = post_bind(side, qp, side->mws[i], &info);
	side_log(side, "send %u posted to qp %d binds window %d: %u bytes, access %#x: %d",
		 side->last_id, qp, i, (uint32_t)info.length, info.mw_access_flags, rc);
	if (rc)
		return rc;
	side->sends[qp]++;
	side->own.windows[i].rkey = side->mws[i]->rkey;
	side->own.windows[i].addr = info.addr;
	side->own.windows[i].length = (uint32_t)info.length;
	side->own.windows[i].bound = side->mws[i]->type == IBV_MW_TYPE_2;
	side->own.windows[i].qp = qp;
	return 0;
}

static int post_send(struct side *side, int qp)
{
	struct message m = draw_message(side, qp);

	return m.opcode == IBV_WR_BIND_MW ? bind_window(side, qp) : post_message(side, &m);
}

void request_post_sends(struct side *side, int qp)
{
	uint32_t count = side->errors ? 1 : 1 + draw_below(LIST_MOST);

	while (count-- && !post_send(side, qp))
		;
}
