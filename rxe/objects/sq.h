/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send queues: their requests as the requester needs them. */
#ifndef URXE_OBJECTS_SQ_H
#define URXE_OBJECTS_SQ_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

#include "memory/sg_list.h"

/* A send request in the queue, with its segments or inline data in `data`. */
struct send_wqe {
	uint64_t wr_id;
	uint32_t opcode;
	uint32_t flags;
	uint8_t kind;  /* enum wr_kind */
	bool again;    /* a packet of the request was sent more than once */
	bool executed; /* executed without packets: the request completes when all earlier ones have
			  completed */
	uint32_t n_segs;
	uint32_t length;    /* bytes of the message */
	uint32_t n_packets; /* PSNs of the message, at least 1; 0 for WR_LOCAL and WR_MALFORMED */
	uint32_t first_psn; /* valid once the request has been `cur` */
	uint32_t recv_seq; /* number of requests up to this one that use up a receive request of the
			      peer */
	uint32_t imm;
	uint32_t invalidate_key;
	uint32_t rkey;
	uint64_t remote_addr;
	/* Only the member that the opcode and the QP's type use is written. */
	union {
		struct { /* WR_ATOMIC */
			uint64_t compare_add;
			uint64_t swap;
		};
		struct { /* UD */
			struct urxe_path path;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
			uint16_t pkey_index; /* QP 1 */
		};
		struct urxe_mw_bind bind;      /* URXE_WR_BIND_MW */
		struct urxe_fast_reg fast_reg; /* URXE_WR_REG_MR */
		struct urxe_flush flush;       /* WR_FLUSH */
		uint8_t error;                 /* WR_MALFORMED: enum urxe_wc_status */
	};
	uint8_t data[] __attribute__((aligned(8)));
};

struct sq {
	uint8_t *wqes;
	uint16_t stride; /* bytes of a slot */
	uint8_t max_sge;
	bool send_retired_called; /* since the last urxe_sq_retired */
	uint32_t max_wr;
	uint32_t mask; /* slots - 1 */
	uint32_t head; /* number of requests posted; all indices are free-running */
	uint32_t cur;  /* the request being sent, or to be sent next */
	uint32_t tail; /* the oldest request that is not completed */
};

/* Kinds of requests. WR_INVALID: an unknown opcode. WR_LOCAL: the engine executes the request
 * without a packet. WR_MALFORMED: the request sends no packet, and fails. */
enum wr_kind {
	WR_INVALID,
	WR_SEND,
	WR_WRITE,
	WR_READ,
	WR_ATOMIC,
	WR_FLUSH,
	WR_ATOMIC_WRITE,
	WR_LOCAL,
	WR_MALFORMED,
};

struct wr_info {
	uint8_t kind; /* enum wr_kind */
	uint8_t wc;   /* enum urxe_wc_opcode */
	bool imm;
	uint8_t types; /* QP types that may post it: bits 1 << enum urxe_qp_type */
};

#define SQ_WR_OPCODES (URXE_WR_REG_MR + 1)
/* Properties of the opcodes; the index is enum urxe_wr_opcode. */
extern const struct wr_info sq_wr_infos[SQ_WR_OPCODES];

/* These functions take the opcode of a request that was posted, thus a valid one. */
static inline bool wr_has_imm(uint32_t opcode)
{
	return sq_wr_infos[opcode].imm;
}

static inline enum urxe_wc_opcode wr_wc_opcode(uint32_t opcode)
{
	return (enum urxe_wc_opcode)sq_wr_infos[opcode].wc;
}

/* Whether the request uses up a receive request of the peer. */
static inline bool wr_takes_receive(uint32_t opcode)
{
	return sq_wr_infos[opcode].kind == WR_SEND ||
	       (sq_wr_infos[opcode].kind == WR_WRITE && wr_has_imm(opcode));
}

int sq_init(struct sq *sq, const struct urxe_qp_cap *cap);
void sq_free(struct sq *sq);

static inline struct send_wqe *sq_wqe(const struct sq *sq, uint32_t index)
{
	return (struct send_wqe *)(sq->wqes + (size_t)(index & sq->mask) * sq->stride);
}

/* Whether requests of this kind use a resource of the responder: a response of their own completes
 * them, not an ACK. */
static inline bool wr_is_rd_atomic(enum wr_kind kind)
{
	return kind == WR_READ || kind == WR_ATOMIC || kind == WR_FLUSH || kind == WR_ATOMIC_WRITE;
}

static inline bool wqe_is_rd_atomic(const struct send_wqe *wqe)
{
	return wr_is_rd_atomic(wqe->kind);
}

static inline struct sge_list wqe_sge_list(const struct send_wqe *wqe, uint32_t pd)
{
	return (struct sge_list){
		.segs = (const struct urxe_seg *)wqe->data,
		.n = wqe->n_segs,
		.pd = pd,
	};
}

#endif
