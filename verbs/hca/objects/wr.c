/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wr.h"

#include <errno.h>
#include <stddef.h>

_Static_assert(sizeof(struct urxe_seg) == sizeof(struct ibv_sge) &&
		       offsetof(struct urxe_seg, addr) == offsetof(struct ibv_sge, addr) &&
		       offsetof(struct urxe_seg, length) == offsetof(struct ibv_sge, length) &&
		       offsetof(struct urxe_seg, lkey) == offsetof(struct ibv_sge, lkey),
	       "lists of segments are passed on");
_Static_assert((int)URXE_SEND_INLINE == IBV_SEND_INLINE && (int)URXE_SEND_FENCE == IBV_SEND_FENCE &&
		       (int)URXE_SEND_SOLICITED == IBV_SEND_SOLICITED,
	       "flags are passed on");
_Static_assert((int)URXE_WR_SEND == IBV_WR_SEND &&
		       (int)URXE_WR_FETCH_ADD == IBV_WR_ATOMIC_FETCH_AND_ADD &&
		       (int)URXE_WR_SEND_INV == IBV_WR_SEND_WITH_INV,
	       "opcodes are passed on");
_Static_assert((int)URXE_WC_RECV == IBV_WC_RECV && (int)URXE_WC_GRH == IBV_WC_GRH &&
		       (int)URXE_WC_WITH_IMM == IBV_WC_WITH_IMM &&
		       (int)URXE_WC_WITH_INV == IBV_WC_WITH_INV,
	       "opcodes and flags of completions are passed on");

#define SEND_FLAGS (URXE_SEND_FENCE | URXE_SEND_SOLICITED | URXE_SEND_INLINE)
#define WC_FLAGS   (URXE_WC_GRH | URXE_WC_WITH_IMM | URXE_WC_WITH_INV)

static struct ibv_sge *segments(const struct urxe_seg *segs)
{
	return (struct ibv_sge *)(uintptr_t)segs;
}

static void describe_operation(struct ibv_send_wr *to, const struct urxe_send_wr *from)
{
	switch (from->opcode) {
	case URXE_WR_RDMA_WRITE:
	case URXE_WR_RDMA_WRITE_IMM:
	case URXE_WR_RDMA_READ:
		to->wr.rdma.remote_addr = from->remote_addr;
		to->wr.rdma.rkey = from->rkey;
		break;
	case URXE_WR_COMPARE_SWAP:
	case URXE_WR_FETCH_ADD:
		to->wr.atomic.remote_addr = from->remote_addr;
		to->wr.atomic.rkey = from->rkey;
		to->wr.atomic.compare_add = from->compare_add;
		to->wr.atomic.swap = from->swap;
		break;
	default: break;
	}
}

void hca_wr_send(struct ibv_send_wr *to, struct ibv_sge *sge, const struct urxe_send_wr *from)
{
	to->opcode = (enum ibv_wr_opcode)from->opcode;
	to->send_flags = from->flags & SEND_FLAGS;
	if (from->flags & URXE_SEND_INLINE) {
		*sge = (struct ibv_sge){.addr = (uintptr_t)from->inline_data,
					.length = from->inline_len};
		to->sg_list = sge;
		to->num_sge = from->inline_len ? 1 : 0;
	} else {
		to->sg_list = segments(from->segs);
		to->num_sge = (int)from->n_segs;
	}
	if (from->opcode == URXE_WR_SEND_INV || from->opcode == URXE_WR_LOCAL_INV)
		to->invalidate_rkey = from->invalidate_key;
	else
		to->imm_data = from->imm;
	if (!from->path) {
		describe_operation(to, from);
		return;
	}
	to->wr.ud.remote_qpn = from->remote_qpn;
	to->wr.ud.remote_qkey = from->remote_qkey;
}

uint32_t hca_wr_receives(struct ibv_recv_wr *list, const struct urxe_recv_wr *wrs, uint32_t n,
			 struct work_slots *slots, uint32_t id)
{
	uint32_t i, slot;

	for (i = 0; i < n && i < HCA_WR_BATCH && work_slots_take(slots, wrs[i].wr_id, &slot); i++) {
		list[i] = (struct ibv_recv_wr){
			.wr_id = work_id_of_recv(id, slot),
			.next = &list[i + 1],
			.sg_list = segments(wrs[i].segs),
			.num_sge = (int)wrs[i].n_segs,
		};
	}
	if (i)
		list[i - 1].next = NULL;
	return i;
}

void hca_wr_unused(const struct ibv_recv_wr *list, uint32_t n, struct work_slots *slots)
{
	uint64_t wr_id;

	for (uint32_t i = 0; i < n; i++)
		work_slots_return(slots, (uint32_t)list[i].wr_id, &wr_id);
}

uint32_t hca_wr_taken(int rc, ptrdiff_t bad, uint32_t n)
{
	if (!rc)
		return n;
	return bad >= 0 && bad < (ptrdiff_t)n ? (uint32_t)bad : 0;
}

int hca_wr_error(int rc)
{
	if (rc < 0)
		rc = errno;
	if (!rc)
		return 0;
	return rc == ENOMEM || rc == EAGAIN ? -ENOMEM : -EINVAL;
}

void hca_wr_completion(struct urxe_wc *to, const struct ibv_wc *from)
{
	to->status = from->status;
	if (from->status != IBV_WC_SUCCESS)
		return;
	to->opcode = from->opcode;
	to->byte_len = from->byte_len;
	to->flags = from->wc_flags & WC_FLAGS;
	if (from->wc_flags & IBV_WC_WITH_INV)
		to->invalidated_key = from->invalidated_rkey;
	else
		to->imm = from->imm_data;
	to->src_qpn = from->src_qp;
	to->pkey_index = from->pkey_index;
	to->sl = from->sl;
}
