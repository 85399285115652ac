/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/sq.h"

#include <errno.h>
#include <stdlib.h>

#include "util/ring.h"

#define RC_ONLY (1 << URXE_QPT_RC)
#define RC_UC   (RC_ONLY | 1 << URXE_QPT_UC)
#define ALL     (RC_UC | 1 << URXE_QPT_UD)

const struct wr_info sq_wr_infos[SQ_WR_OPCODES] = {
	[URXE_WR_RDMA_WRITE] = {WR_WRITE, URXE_WC_RDMA_WRITE, false, RC_UC},
	[URXE_WR_RDMA_WRITE_IMM] = {WR_WRITE, URXE_WC_RDMA_WRITE, true, RC_UC},
	[URXE_WR_SEND] = {WR_SEND, URXE_WC_SEND, false, ALL},
	[URXE_WR_SEND_IMM] = {WR_SEND, URXE_WC_SEND, true, ALL},
	[URXE_WR_RDMA_READ] = {WR_READ, URXE_WC_RDMA_READ, false, RC_ONLY},
	[URXE_WR_COMPARE_SWAP] = {WR_ATOMIC, URXE_WC_COMPARE_SWAP, false, RC_ONLY},
	[URXE_WR_FETCH_ADD] = {WR_ATOMIC, URXE_WC_FETCH_ADD, false, RC_ONLY},
	[URXE_WR_LOCAL_INV] = {WR_LOCAL, URXE_WC_LOCAL_INV, false, RC_UC},
	[URXE_WR_BIND_MW] = {WR_LOCAL, URXE_WC_BIND_MW, false, RC_UC},
	[URXE_WR_SEND_INV] = {WR_SEND, URXE_WC_SEND, false, RC_ONLY},
	[URXE_WR_FLUSH] = {WR_FLUSH, URXE_WC_FLUSH, false, RC_ONLY},
	[URXE_WR_REG_MR] = {WR_LOCAL, URXE_WC_REG_MR, false, RC_UC},
	[URXE_WR_ATOMIC_WRITE] = {WR_ATOMIC_WRITE, URXE_WC_ATOMIC_WRITE, false, RC_ONLY},
};

int sq_init(struct sq *sq, const struct urxe_qp_cap *cap)
{
	uint32_t segs = cap->max_send_sge * (uint32_t)sizeof(struct urxe_seg);
	uint32_t room = segs > cap->max_inline ? segs : cap->max_inline;

	sq->max_wr = cap->max_send_wr;
	sq->max_sge = (uint8_t)cap->max_send_sge;
	sq->mask = ring_slots(cap->max_send_wr) - 1;
	sq->stride = (uint16_t)(sizeof(struct send_wqe) + ((room + 7u) & ~7u));
	sq->wqes = calloc(sq->mask + 1u, sq->stride);
	return sq->wqes ? 0 : -ENOMEM;
}

void sq_free(struct sq *sq)
{
	free(sq->wqes);
}
