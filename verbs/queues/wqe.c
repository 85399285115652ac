/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/wqe.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "objects/verbs_mr.h"

_Static_assert(sizeof(struct rxe_sge) == sizeof(struct urxe_seg) &&
		       offsetof(struct rxe_sge, addr) == offsetof(struct urxe_seg, addr) &&
		       offsetof(struct rxe_sge, length) == offsetof(struct urxe_seg, length) &&
		       offsetof(struct rxe_sge, lkey) == offsetof(struct urxe_seg, lkey),
	       "segments are copied as they are");

#define SEND_FLAGS (URXE_SEND_FENCE | URXE_SEND_SIGNALED | URXE_SEND_SOLICITED | URXE_SEND_INLINE)

/* Copies from the ring. The compiler must not read the ring again in place of the copy, because the
 * program may have changed the ring meanwhile. */
static void copy_once(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	__asm__ volatile("" : : "r"(to) : "memory");
}

static void read_path(struct urxe_path *path, const struct rxe_av *av)
{
	*path = (struct urxe_path){
		.sgid_index = av->grh.sgid_index,
		.traffic_class = av->grh.traffic_class,
		.hop_limit = av->grh.hop_limit,
		.flow_label = av->grh.flow_label & 0xfffff,
	};
	memcpy(path->dgid.raw, av->grh.dgid.raw, sizeof(path->dgid.raw));
	memcpy(path->dmac, av->dmac, sizeof(path->dmac));
}

static void read_bind(struct urxe_mw_bind *bind, const struct rxe_send_wr *wr)
{
	*bind = (struct urxe_mw_bind){
		.mw_key = wr->wr.mw.mw_rkey,
		.tag = (uint8_t)wr->wr.mw.rkey,
		.mr_key = wr->wr.mw.mr_lkey,
		.access = wr->wr.mw.access & ~(uint32_t)HARMLESS_ACCESS,
		.addr = wr->wr.mw.addr,
		.length = wr->wr.mw.length,
	};
}

/* Layout of rxe_send_wr.wr for FLUSH, which only headers of Linux 6.2 and later have. */
struct flush_part {
	uint64_t remote_addr;
	uint32_t length;
	uint32_t rkey;
	uint8_t type;  /* enum urxe_flush_placement */
	uint8_t level; /* enum urxe_flush_selectivity */
};

static void read_flush(struct urxe_send_wr *to, const struct rxe_send_wr *wr)
{
	struct flush_part part;

	memcpy(&part, &wr->wr, sizeof(part));
	to->remote_addr = part.remote_addr;
	to->rkey = part.rkey;
	to->flush = (struct urxe_flush){part.type, part.level, part.length};
}

static int read_target(struct send_request *request, const struct rxe_send_wr *wr, uint8_t qp_type)
{
	struct urxe_send_wr *to = &request->wr;

	switch (wr->opcode) {
	case URXE_WR_LOCAL_INV:
	case URXE_WR_SEND_INV: to->invalidate_key = wr->ex.invalidate_rkey; return 0;
	case URXE_WR_BIND_MW: read_bind(&to->bind, wr); return 0;
	case URXE_WR_FLUSH: read_flush(to, wr); return 0;
	case URXE_WR_SEND:
	case URXE_WR_SEND_IMM:
		if (qp_type != URXE_QPT_UD)
			return 0;
		request->ah = wr->wr.ud.ah_num;
		if (!request->ah)
			read_path(&request->path, &wr->wr.ud.av);
		to->path = &request->path;
		to->remote_qpn = wr->wr.ud.remote_qpn;
		to->remote_qkey = wr->wr.ud.remote_qkey;
		return 0;
	case URXE_WR_RDMA_WRITE:
	case URXE_WR_RDMA_WRITE_IMM:
	case URXE_WR_RDMA_READ:
	case URXE_WR_ATOMIC_WRITE:
		to->remote_addr = wr->wr.rdma.remote_addr;
		to->rkey = wr->wr.rdma.rkey;
		return 0;
	case URXE_WR_COMPARE_SWAP:
	case URXE_WR_FETCH_ADD:
		to->remote_addr = wr->wr.atomic.remote_addr;
		to->rkey = wr->wr.atomic.rkey;
		to->compare_add = wr->wr.atomic.compare_add;
		to->swap = wr->wr.atomic.swap;
		return 0;
	default: return -EINVAL;
	}
}

/* Removes the segments and inline data of local operations, which have none. librxe leaves old
 * values there, which Linux' rxe ignores. */
static void drop_data_of_local(struct rxe_send_wqe *wqe)
{
	if (wqe->wr.opcode != URXE_WR_BIND_MW && wqe->wr.opcode != URXE_WR_LOCAL_INV)
		return;
	wqe->dma.num_sge = wqe->dma.length = 0;
	wqe->wr.send_flags &= ~(uint32_t)URXE_SEND_INLINE;
}

int wqe_read_send(struct send_request *request, const struct rxe_send_wqe *wqe,
		  const struct wqe_limits *limits)
{
	struct urxe_send_wr *wr = &request->wr;
	struct rxe_send_wqe copy;

	copy_once(&copy, wqe, sizeof(copy));
	drop_data_of_local(&copy);
	*wr = (struct urxe_send_wr){
		.wr_id = copy.wr.wr_id,
		.opcode = copy.wr.opcode,
		.flags = copy.wr.send_flags & SEND_FLAGS,
		.imm = copy.wr.ex.imm_data,
	};
	request->ah = 0;
	/*
	 * ibv_wr_set_inline_data and ibv_wr_atomic_write store inline data without setting the
	 * flag.
	 */
	if (!copy.dma.num_sge && (copy.dma.length || wr->opcode == URXE_WR_ATOMIC_WRITE))
		wr->flags |= URXE_SEND_INLINE;
	if (wr->flags & URXE_SEND_INLINE) {
		if (copy.dma.length > limits->max_inline)
			return -EINVAL;
		wr->inline_len = copy.dma.length;
		wr->inline_data = wqe->dma.inline_data;
	} else {
		if (copy.dma.num_sge > limits->max_sge || copy.dma.num_sge > URXE_MAX_SGE)
			return -EINVAL;
		copy_once(request->segs, wqe->dma.sge, copy.dma.num_sge * sizeof(request->segs[0]));
		wr->n_segs = copy.dma.num_sge;
		wr->segs = request->segs;
	}
	return read_target(request, &copy.wr, limits->qp_type);
}

int wqe_read_recv(struct recv_request *request, const struct rxe_recv_wqe *wqe, uint32_t max_sge)
{
	struct rxe_recv_wqe copy;

	copy_once(&copy, wqe, sizeof(copy));
	request->wr = (struct urxe_recv_wr){.wr_id = copy.wr_id};
	if (copy.dma.num_sge > max_sge || copy.dma.num_sge > URXE_MAX_SGE)
		return -EINVAL;
	copy_once(request->segs, wqe->dma.sge, copy.dma.num_sge * sizeof(request->segs[0]));
	request->wr.n_segs = copy.dma.num_sge;
	request->wr.segs = request->segs;
	return 0;
}
