/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine's work requests, completions and attributes.
 *
 * Values of opcodes, statuses, flags, states and attribute masks are those of
 * the verbs ABI (infiniband/verbs.h), so that a front end for it needs no
 * tables; verbs/ asserts their equality at compile time.
 */
#ifndef URXE_RXE_TYPES_H
#define URXE_RXE_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rxe/packet.h>

#define URXE_MAX_SGE          32          /* scatter/gather entries of a work request */
#define URXE_MAX_INLINE       512         /* bytes of inline data */
#define URXE_MAX_WR           32768       /* work requests of a queue */
#define URXE_MAX_MSG          0x80000000u /* bytes of a message (IBA 9.7.7.1: 2^31) */
#define URXE_MAX_RD_ATOMIC    128         /* outstanding READs and atomics, each way */
#define URXE_MAX_GIDS         32
#define URXE_MAX_PKEYS        16
#define URXE_MAX_MCAST_GROUPS 1024
#define URXE_MAX_MCAST_QPS    64 /* of one group */
#define URXE_GRH_LEN          40 /* bytes in front of a received UD payload */
#define URXE_CACHE_LINE       64 /* bytes */

/* Values of IBTA's MTU enumeration; bytes = 128 << value. */
enum urxe_mtu { URXE_MTU_256 = 1, URXE_MTU_512, URXE_MTU_1024, URXE_MTU_2048, URXE_MTU_4096 };

enum urxe_qp_type { URXE_QPT_RC = 2, URXE_QPT_UC = 3, URXE_QPT_UD = 4 };

enum urxe_qp_state {
	URXE_QPS_RESET,
	URXE_QPS_INIT,
	URXE_QPS_RTR,
	URXE_QPS_RTS,
	URXE_QPS_SQD,
	URXE_QPS_SQE,
	URXE_QPS_ERR,
	URXE_QPS_COUNT
};

/* Values of enum ibv_mig_state. A QP has one path, so its state is always MIGRATED. */
enum urxe_mig_state { URXE_MIG_MIGRATED, URXE_MIG_REARM, URXE_MIG_ARMED };

enum urxe_access {
	URXE_ACCESS_LOCAL_WRITE = 1,
	URXE_ACCESS_REMOTE_WRITE = 2,
	URXE_ACCESS_REMOTE_READ = 4,
	URXE_ACCESS_REMOTE_ATOMIC = 8,
	URXE_ACCESS_MW_BIND = 16,    /* of a region: windows may be bound to it */
	URXE_ACCESS_ZERO_BASED = 32, /* of a type 2 window: its first byte has address 0 */
	URXE_ACCESS_ON_DEMAND = 64, /* of a region: the engine keeps this flag for its owner only */
	URXE_ACCESS_FLUSH_GLOBAL = 256,
	URXE_ACCESS_FLUSH_PERSISTENT = 512, /* needs urxe_ops.persist */
};

/* The flags of regions. Programs give QPs the same ones; ZERO_BASED and ON_DEMAND have no effect
 * there. */
#define URXE_ACCESS_ALL                                                                 \
	(URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | \
	 URXE_ACCESS_REMOTE_ATOMIC | URXE_ACCESS_MW_BIND | URXE_ACCESS_ZERO_BASED |     \
	 URXE_ACCESS_ON_DEMAND | URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)

/* IBA 10.6.7: type 1 is bound and unbound at will, type 2 serves the QP that bound it (2B). */
enum urxe_mw_type { URXE_MW_TYPE_1 = 1, URXE_MW_TYPE_2 = 2 };

enum urxe_wr_opcode {
	URXE_WR_RDMA_WRITE = 0,
	URXE_WR_RDMA_WRITE_IMM = 1,
	URXE_WR_SEND = 2,
	URXE_WR_SEND_IMM = 3,
	URXE_WR_RDMA_READ = 4,
	URXE_WR_COMPARE_SWAP = 5,
	URXE_WR_FETCH_ADD = 6,
	URXE_WR_LOCAL_INV = 7,
	URXE_WR_BIND_MW = 8,
	URXE_WR_SEND_INV = 9,
	URXE_WR_FLUSH = 14,
	URXE_WR_ATOMIC_WRITE = 15,
	URXE_WR_REG_MR = 32, /* the kernel's IB_WR_REG_MR; user programs have none */
};

enum urxe_send_flag {
	URXE_SEND_FENCE = 1,
	URXE_SEND_SIGNALED = 2,
	URXE_SEND_SOLICITED = 4,
	URXE_SEND_INLINE = 8,
};

struct urxe_seg {
	uint64_t addr; /* in the key's address space */
	uint32_t length;
	uint32_t lkey;
};

/* The path to the destination of a UD message or a connection. */
struct urxe_path {
	struct urxe_gid dgid;
	uint8_t dmac[6]; /* of dgid, or of the router to it; all 0: the owner knows no next hop, so
			    only an HCA, which finds its next hops itself, can use the path */
	uint8_t sgid_index;
	uint8_t traffic_class;
	uint8_t hop_limit; /* 0 counts as 64 */
	uint8_t sl;        /* 0 to 7 */
	uint32_t flow_label;
};

static inline bool urxe_path_has_next_hop(const struct urxe_path *path)
{
	static const uint8_t none[sizeof(path->dmac)];

	return memcmp(path->dmac, none, sizeof(none)) != 0;
}

/* The arguments of a bind (IBA 10.6.7.2, 11.3.4.7). */
struct urxe_mw_bind {
	uint32_t mw_key; /* the window's current key */
	uint8_t tag;     /* low 8 bits of the new key, chosen by the consumer */
	uint32_t mr_key;
	uint32_t access; /* enum urxe_access: remote rights, and zero based */
	uint64_t addr;   /* in the region's address space */
	uint64_t length; /* 0: a type 1 window is unbound */
};

/* Placement types of a FLUSH, at least one of these bits, and its selectivity (Annex A19). */
enum urxe_flush_placement { URXE_FLUSH_GLOBAL = 1, URXE_FLUSH_PERSISTENT = 2 };
enum urxe_flush_selectivity { URXE_FLUSH_RANGE = 0, URXE_FLUSH_KEY = 1 };

struct urxe_flush {
	uint8_t placement;   /* enum urxe_flush_placement */
	uint8_t selectivity; /* enum urxe_flush_selectivity: a range, or all that the key grants */
	uint32_t length;     /* bytes, with URXE_FLUSH_RANGE */
};

/* The arguments of a fast registration (IBA 10.6.3.4, 11.4.1.1): a list of pages becomes a region.
 */
struct urxe_fast_reg {
	uint32_t key;    /* upper 24 bits: of a urxe_fast_mr; low 8 bits: chosen by the consumer */
	uint32_t access; /* enum urxe_access */
	uint64_t iova;   /* address of the first byte in the key's address space */
	uint64_t length;
	uint64_t
		page_list; /* for urxe_ops.page_list; the engine does not interpret these members */
	uint32_t n_pages;
	uint32_t page_shift;
};

struct urxe_send_wr {
	uint64_t wr_id;
	uint32_t opcode;     /* enum urxe_wr_opcode */
	uint32_t flags;      /* enum urxe_send_flag */
	bool cqes_unpolled;  /* the send CQ has completions that the program has not taken */
	uint32_t imm;        /* network byte order */
	uint32_t n_segs;     /* 0 with URXE_SEND_INLINE */
	uint32_t inline_len; /* with URXE_SEND_INLINE */
	const struct urxe_seg *segs;
	const void *inline_data;
	uint32_t invalidate_key; /* SEND_INV: the peer's key; LOCAL_INV: this side's */
	struct urxe_mw_bind bind;
	struct urxe_fast_reg fast_reg; /* REG_MR */
	struct urxe_flush flush;
	/* Only for RDMA and atomics: */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t compare_add;
	uint64_t swap;
	/* Only for UD: */
	const struct urxe_path *path;
	uint32_t remote_qpn;  /* bits 24 to 31 are ignored */
	uint32_t remote_qkey; /* with the high bit set, the QP's own is sent (IBA 10.2.5) */
	uint16_t pkey_index;  /* QP 1 only; other QPs send their own P_Key (IBA 10.9) */
};

struct urxe_recv_wr {
	uint64_t wr_id;
	uint32_t n_segs;
	const struct urxe_seg *segs;
};

enum urxe_wc_status {
	URXE_WC_SUCCESS = 0,
	URXE_WC_LOC_LEN_ERR = 1,
	URXE_WC_LOC_QP_OP_ERR = 2,
	URXE_WC_LOC_PROT_ERR = 4,
	URXE_WC_WR_FLUSH_ERR = 5,
	URXE_WC_MW_BIND_ERR = 6,
	URXE_WC_BAD_RESP_ERR = 7,
	URXE_WC_LOC_ACCESS_ERR = 8,
	URXE_WC_REM_INV_REQ_ERR = 9,
	URXE_WC_REM_ACCESS_ERR = 10,
	URXE_WC_REM_OP_ERR = 11,
	URXE_WC_RETRY_EXC_ERR = 12,
	URXE_WC_RNR_RETRY_EXC_ERR = 13,
};

enum urxe_wc_opcode {
	URXE_WC_SEND = 0,
	URXE_WC_RDMA_WRITE = 1,
	URXE_WC_RDMA_READ = 2,
	URXE_WC_COMPARE_SWAP = 3,
	URXE_WC_FETCH_ADD = 4,
	URXE_WC_BIND_MW = 5,
	URXE_WC_LOCAL_INV = 6,
	URXE_WC_FLUSH = 8,
	URXE_WC_ATOMIC_WRITE = 9,
	URXE_WC_REG_MR = 10,
	URXE_WC_RECV = 128,
	URXE_WC_RECV_RDMA_WITH_IMM = 129,
};

enum urxe_wc_flag { URXE_WC_GRH = 1, URXE_WC_WITH_IMM = 2, URXE_WC_WITH_INV = 8 };

struct urxe_wc {
	uint64_t wr_id;
	void *qp_ctx;    /* urxe_qp_init.ctx of the QP */
	uint32_t status; /* enum urxe_wc_status; after an error, only this, the members above and
			    qpn are valid */
	uint32_t opcode; /* enum urxe_wc_opcode */
	uint32_t byte_len;
	uint32_t imm;             /* network byte order, with URXE_WC_WITH_IMM */
	uint32_t invalidated_key; /* with URXE_WC_WITH_INV */
	uint32_t qpn;
	uint32_t src_qpn;    /* UD */
	uint32_t flags;      /* enum urxe_wc_flag */
	uint16_t pkey_index; /* QP 1: of the entry that the datagram's P_Key matched */
	uint8_t sl;          /* UD: service level, from the priority of its VLAN tag */
	uint8_t net;         /* UD: enum urxe_net of the datagram; else 0 */
	bool solicited;      /* a receive of a solicited message, or any error */
};

/* Values of enum ibv_event_type. */
enum urxe_async {
	URXE_ASYNC_CQ_ERR = 0,
	URXE_ASYNC_QP_FATAL = 1,
	URXE_ASYNC_QP_REQ_ERR = 2,
	URXE_ASYNC_QP_ACCESS_ERR = 3,
	URXE_ASYNC_COMM_EST = 4,
	URXE_ASYNC_SQ_DRAINED = 5,
	URXE_ASYNC_SRQ_ERR = 14,
	URXE_ASYNC_SRQ_LIMIT_REACHED = 15,
	URXE_ASYNC_QP_LAST_WQE_REACHED = 16,
};

/* Which members of urxe_qp_attr count; values of enum ibv_qp_attr_mask. */
enum urxe_qp_attr_mask {
	URXE_QP_STATE = 1 << 0,
	URXE_QP_CUR_STATE = 1 << 1,
	URXE_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	URXE_QP_ACCESS_FLAGS = 1 << 3,
	URXE_QP_PKEY_INDEX = 1 << 4,
	URXE_QP_PORT = 1 << 5,
	URXE_QP_QKEY = 1 << 6,
	URXE_QP_AV = 1 << 7,
	URXE_QP_PATH_MTU = 1 << 8,
	URXE_QP_TIMEOUT = 1 << 9,
	URXE_QP_RETRY_CNT = 1 << 10,
	URXE_QP_RNR_RETRY = 1 << 11,
	URXE_QP_RQ_PSN = 1 << 12,
	URXE_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	URXE_QP_ALT_PATH = 1 << 14,
	URXE_QP_MIN_RNR_TIMER = 1 << 15,
	URXE_QP_SQ_PSN = 1 << 16,
	URXE_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	URXE_QP_PATH_MIG_STATE = 1 << 18,
	URXE_QP_CAP = 1 << 19,
	URXE_QP_DEST_QPN = 1 << 20,
	URXE_QP_RATE_LIMIT = 1 << 25,
};

/* The last members, from `state` on, are those that the packets of a connection need. In a QP they
 * share a cache line with other such members. */
struct urxe_qp_attr {
	struct urxe_path path;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t rate_limit;        /* kb/s of requests and READ responses; 0 = none */
	uint8_t cur_state;          /* enum urxe_qp_state */
	uint8_t path_mtu;           /* enum urxe_mtu */
	uint8_t max_dest_rd_atomic; /* of the peer; the QP accepts the next power of two */
	uint8_t port;
	uint8_t path_mig_state;   /* enum urxe_mig_state */
	bool en_sqd_async_notify; /* the owner requests SQ_DRAINED */
	bool sq_draining;         /* query: in SQD, and requests are still outstanding */
	uint8_t state;            /* enum urxe_qp_state */
	uint32_t qkey;
	uint32_t access;       /* enum urxe_access: rights of the peer */
	uint8_t timeout;       /* local ACK timeout: 4.096 us << timeout, 0 = none; 0 to 31 */
	uint8_t retry_cnt;     /* 0 to 7; urxe_qp_modify takes more as 7 */
	uint8_t rnr_retry;     /* 0 to 6; 7 = without end; urxe_qp_modify takes more as 7 */
	uint8_t min_rnr_timer; /* code of IBA table 45: the low 5 bits */
	uint8_t max_rd_atomic; /* READs and atomics that this side may have outstanding */
	uint16_t pkey_index;
	uint32_t dest_qpn;
};

struct urxe_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
};

#endif
