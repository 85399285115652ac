/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/send_wqe.h"

#include "memory/pvrdma_mr.h"
#include "queues/path.h"
#include "queues/wqe_size.h"

/* No opcode of the engine. */
#define NO_OPCODE UINT8_MAX

/* Returns the engine's opcode for an opcode of PVRDMA; NO_OPCODE: the engine has none. Only the
 * opcodes up to FETCH_AND_ADD have the same numbers on both sides. */
static uint8_t engine_opcode(uint32_t opcode)
{
	static const uint8_t opcodes[] = {
		[PVRDMA_WR_RDMA_WRITE] = URXE_WR_RDMA_WRITE,
		[PVRDMA_WR_RDMA_WRITE_WITH_IMM] = URXE_WR_RDMA_WRITE_IMM,
		[PVRDMA_WR_SEND] = URXE_WR_SEND,
		[PVRDMA_WR_SEND_WITH_IMM] = URXE_WR_SEND_IMM,
		[PVRDMA_WR_RDMA_READ] = URXE_WR_RDMA_READ,
		[PVRDMA_WR_ATOMIC_CMP_AND_SWP] = URXE_WR_COMPARE_SWAP,
		[PVRDMA_WR_ATOMIC_FETCH_AND_ADD] = URXE_WR_FETCH_ADD,
		[PVRDMA_WR_LSO] = NO_OPCODE,
		[PVRDMA_WR_SEND_WITH_INV] = URXE_WR_SEND_INV,
		[PVRDMA_WR_RDMA_READ_WITH_INV] = NO_OPCODE,
		[PVRDMA_WR_LOCAL_INV] = URXE_WR_LOCAL_INV,
		[PVRDMA_WR_FAST_REG_MR] = URXE_WR_REG_MR,
	};

	return opcode < sizeof(opcodes) ? opcodes[opcode] : NO_OPCODE;
}

/* Flags with the same values in PVRDMA and in the engine. Data of requests is never inline: the
 * device offers no inline data, and the provider passes segments in spite of the flag. */
#define SEND_FLAGS ((uint32_t)(URXE_SEND_FENCE | URXE_SEND_SIGNALED | URXE_SEND_SOLICITED))

uint32_t pv_send_wqe_size(uint32_t max_sge)
{
	return pv_wqe_size(sizeof(struct pvrdma_sq_wqe_hdr), max_sge);
}

static bool read_datagram(const struct pv_qp *qp, const struct pvrdma_sq_wqe_hdr *header,
			  struct pv_send_request *request)
{
	request->wr.path = &request->path;
	request->wr.remote_qpn = header->wr.ud.remote_qpn & URXE_QPN_MASK;
	request->wr.remote_qkey = header->wr.ud.remote_qkey;
	return pv_path_of_av(qp->object.dev, qp->pd, &header->wr.ud.av, &request->path);
}

static void read_fast_reg(const struct pvrdma_sq_wqe_hdr *header, struct urxe_fast_reg *to)
{
	*to = (struct urxe_fast_reg){
		.key = header->wr.fast_reg.rkey,
		.access = pv_mr_access(header->wr.fast_reg.access_flags),
		.iova = header->wr.fast_reg.iova_start,
		.length = header->wr.fast_reg.length,
		.page_list = header->wr.fast_reg.pl_pdir_dma,
		.n_pages = header->wr.fast_reg.page_list_len,
		.page_shift = header->wr.fast_reg.page_shift,
	};
}

static void read_connected(const struct pvrdma_sq_wqe_hdr *header, struct urxe_send_wr *wr)
{
	switch (wr->opcode) {
	case URXE_WR_RDMA_WRITE:
	case URXE_WR_RDMA_WRITE_IMM:
	case URXE_WR_RDMA_READ:
		wr->remote_addr = header->wr.rdma.remote_addr;
		wr->rkey = header->wr.rdma.rkey;
		break;
	case URXE_WR_COMPARE_SWAP:
	case URXE_WR_FETCH_ADD:
		wr->remote_addr = header->wr.atomic.remote_addr;
		wr->rkey = header->wr.atomic.rkey;
		wr->compare_add = header->wr.atomic.compare_add;
		wr->swap = header->wr.atomic.swap;
		break;
	case URXE_WR_SEND_INV:
	case URXE_WR_LOCAL_INV: wr->invalidate_key = header->ex.invalidate_rkey; break;
	case URXE_WR_REG_MR: read_fast_reg(header, &wr->fast_reg); break;
	default: break;
	}
}

bool pv_send_wqe_read(const struct pv_qp *qp, const uint8_t *slot, struct pv_send_request *request)
{
	struct urxe_send_wr *wr = &request->wr;
	struct pvrdma_sq_wqe_hdr header;

	pv_copy_once(&header, slot, sizeof(header));
	*wr = (struct urxe_send_wr){
		.wr_id = header.wr_id,
		.opcode = engine_opcode(header.opcode),
		.flags = header.send_flags & SEND_FLAGS,
		.imm = header.ex.imm_data,
		.n_segs = header.num_sge,
		.segs = request->segs,
	};
	if (wr->opcode == NO_OPCODE || header.num_sge > qp->max_send_sge)
		return false;
	pv_copy_once(request->segs, slot + sizeof(header),
		     header.num_sge * sizeof(request->segs[0]));
	if (!pv_ring_slot_is_intact(&qp->send, slot))
		return false;
	if (qp->type != PV_QPT_RC)
		return read_datagram(qp, &header, request);
	read_connected(&header, wr);
	return true;
}
