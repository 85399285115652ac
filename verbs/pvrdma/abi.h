/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interface of the PVRDMA device that <rdma/vmw_pvrdma-abi.h> leaves out: registers, the shared
 * region, commands and responses, and the rings of events. Little endian unless stated otherwise.
 *
 * Source: the behaviour of Linux' vmw_pvrdma driver (drivers/infiniband/hw/vmw_pvrdma). Names of
 * registers, commands and members are the driver's.
 */
#ifndef URXE_PVRDMA_ABI_H
#define URXE_PVRDMA_ABI_H

#include <stdint.h>

#include <rdma/vmw_pvrdma-abi.h>

/*
 * The version that the device reports, and the oldest one of a driver that it accepts (Linux 5.5).
 * Older drivers take the number of a queue pair for its handle, so they could create queue pairs
 * but not use them.
 */
#define PV_VERSION 20

#define PV_PAGE_SHIFT 12
#define PV_PAGE       4096u

/* A page directory: a page of addresses of tables, each a page of addresses of pages. */
#define PV_DIR_ENTRIES 512u
#define PV_DIR_PAGES   (PV_DIR_ENTRIES * PV_DIR_ENTRIES)

#define PV_BAR_REG 1
#define PV_BAR_UAR 2

/* Registers in BAR1. */
enum pv_reg {
	PV_REG_VERSION = 0x00, /* R: PV_VERSION */
	PV_REG_DSRLOW = 0x04,  /* W: low half of the address of the shared region */
	PV_REG_DSRHIGH = 0x08, /* W: high half; the write loads the shared region */
	PV_REG_CTL = 0x0c,     /* W: enum pv_ctl */
	PV_REG_REQUEST = 0x10, /* W: execute the command in the command slot */
	PV_REG_ERR = 0x14,  /* R: errno value of the last write to DSRLOW, DSRHIGH, CTL or REQUEST;
			       0: success */
	PV_REG_ICR = 0x18,  /* R: vectors raised since the last read, one bit each */
	PV_REG_IMR = 0x1c,  /* RW: masked vectors, one bit each */
	PV_REG_MACL = 0x20, /* R: bytes 0 to 3 of the MAC address */
	PV_REG_MACH = 0x24, /* R: bytes 4 and 5 of the MAC address */
};

enum pv_ctl { PV_CTL_ACTIVATE, PV_CTL_UNQUIESCE, PV_CTL_RESET };

enum pv_vector { PV_VECTOR_RESPONSE, PV_VECTOR_ASYNC, PV_VECTOR_CQ, PV_VECTORS };

/* Bits of doorbells. Those of <rdma/vmw_pvrdma-abi.h> are signed, and shift into the sign. */
#define PV_UAR_QP_SEND    (1u << 30)
#define PV_UAR_QP_RECV    (1u << 31)
#define PV_UAR_CQ_ARM_SOL (1u << 29)
#define PV_UAR_CQ_ARM     (1u << 30)
#define PV_UAR_CQ_POLL    (1u << 31)
#define PV_UAR_SRQ_RECV   (1u << 30)

#define PV_MODE_ROCE 0

#define PV_ATOMIC_COMP_SWAP (1 << 0)
#define PV_ATOMIC_FETCH_ADD (1 << 1)

#define PV_BMME_LOCAL_INV  (1 << 0)
#define PV_BMME_REMOTE_INV (1 << 1)
#define PV_BMME_FAST_REG   (1 << 2)

#define PV_GID_TYPE_ROCE_V1 (1 << 0)
#define PV_GID_TYPE_ROCE_V2 (1 << 1)

#define PV_MR_FLAG_DMA  (1 << 0)
#define PV_MR_FLAG_FRMR (1 << 1)

enum pv_qp_type { PV_QPT_GSI = 1, PV_QPT_RC = 2, PV_QPT_UD = 4 };

#define PV_NO_VLAN 0xfff

struct pv_device_caps {
	uint64_t fw_ver;
	uint64_t node_guid;      /* big endian */
	uint64_t sys_image_guid; /* big endian */
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	uint64_t atomic_arg_sizes;
	uint32_t ex_comp_mask;
	uint32_t device_cap_flags2;
	uint32_t max_fa_bit_boundary;
	uint32_t log_max_atomic_inline_arg;
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t device_cap_flags;
	uint32_t max_sge;
	uint32_t max_sge_rd;
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_pd;
	uint32_t max_qp_rd_atom;
	uint32_t max_ee_rd_atom;
	uint32_t max_res_rd_atom;
	uint32_t max_qp_init_rd_atom;
	uint32_t max_ee_init_rd_atom;
	uint32_t max_ee;
	uint32_t max_rdd;
	uint32_t max_mw;
	uint32_t max_raw_ipv6_qp;
	uint32_t max_raw_ethy_qp;
	uint32_t max_mcast_grp;
	uint32_t max_mcast_qp_attach;
	uint32_t max_total_mcast_qp_attach;
	uint32_t max_ah;
	uint32_t max_fmr;
	uint32_t max_map_per_fmr;
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_uar; /* a power of two */
	uint32_t gid_tbl_len;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay;
	uint8_t phys_port_cnt;
	uint8_t mode;
	uint8_t atomic_ops;
	uint8_t bmme_flags;
	uint8_t gid_types; /* exactly one PV_GID_TYPE bit */
	uint32_t max_fast_reg_page_list_len;
};
_Static_assert(sizeof(struct pv_device_caps) == 208, "driver's layout");

struct pv_ring_page_info {
	uint32_t num_pages; /* number of pages, including the header page */
	uint32_t reserved;
	uint64_t pdir_dma;
};

struct pv_shared_region {
	uint32_t driver_version;
	uint32_t pad;
	uint32_t gos_info[2];
	uint64_t cmd_slot_dma;
	uint64_t resp_slot_dma;
	struct pv_ring_page_info async_ring_pages;
	struct pv_ring_page_info cq_ring_pages;
	uint64_t uar_pfn64;         /* page frame number of BAR2 */
	struct pv_device_caps caps; /* written by the device */
};
_Static_assert(sizeof(struct pv_shared_region) == 280, "driver's layout");

/* An element of the ring of asynchronous events. */
struct pv_eqe {
	uint32_t type; /* values of enum ibv_event_type */
	uint32_t info; /* handle of the object, or number of the port */
};

#define PV_EVENT_PORT_ACTIVE 9 /* of enum ibv_event_type */
#define PV_EVENT_PORT_ERR    10

/* An element of the ring of CQ notifications. */
struct pv_cqne {
	uint32_t info; /* handle of the CQ */
};

/* The two indices of a ring, modulo twice the number of slots. */
struct pv_ring_indices {
	uint32_t prod_tail;
	uint32_t cons_head;
};

/* The beginning of a header page, the first page of each ring and of each queue. */
struct pv_ring_state {
	struct pv_ring_indices tx; /* of a QP's send queue */
	struct pv_ring_indices rx; /* of all other rings */
};

enum pv_cmd {
	PV_CMD_QUERY_PORT,
	PV_CMD_QUERY_PKEY,
	PV_CMD_CREATE_PD,
	PV_CMD_DESTROY_PD,
	PV_CMD_CREATE_MR,
	PV_CMD_DESTROY_MR,
	PV_CMD_CREATE_CQ,
	PV_CMD_RESIZE_CQ,
	PV_CMD_DESTROY_CQ,
	PV_CMD_CREATE_QP,
	PV_CMD_MODIFY_QP,
	PV_CMD_QUERY_QP,
	PV_CMD_DESTROY_QP,
	PV_CMD_CREATE_UC,
	PV_CMD_DESTROY_UC,
	PV_CMD_CREATE_BIND,
	PV_CMD_DESTROY_BIND,
	PV_CMD_CREATE_SRQ,
	PV_CMD_MODIFY_SRQ,
	PV_CMD_QUERY_SRQ,
	PV_CMD_DESTROY_SRQ,
	PV_CMDS,
};

#define PV_CMD_ACK 0x80000000u /* `ack` of a response is this value plus the command's */

struct pv_cmd_hdr {
	uint64_t response; /* returned in the response */
	uint32_t cmd;
	uint32_t reserved;
};

struct pv_cmd_resp_hdr {
	uint64_t response;
	uint32_t ack;
	uint8_t err; /* errno value, 0 = success */
	uint8_t reserved[3];
};

struct pv_port_attr {
	uint32_t state;
	uint32_t max_mtu;
	uint32_t active_mtu;
	uint32_t gid_tbl_len;
	uint32_t port_cap_flags;
	uint32_t max_msg_sz;
	uint32_t bad_pkey_cntr;
	uint32_t qkey_viol_cntr;
	uint16_t pkey_tbl_len;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t max_vl_num;
	uint8_t sm_sl;
	uint8_t subnet_timeout;
	uint8_t init_type_reply;
	uint8_t active_width;
	uint8_t active_speed;
	uint8_t phys_state;
	uint8_t reserved[2];
};
_Static_assert(sizeof(struct pv_port_attr) == 48, "driver's layout");

struct pv_cmd_query_port {
	struct pv_cmd_hdr hdr;
	uint8_t port_num;
	uint8_t reserved[7];
};

struct pv_cmd_query_port_resp {
	struct pv_cmd_resp_hdr hdr;
	struct pv_port_attr attrs;
};

struct pv_cmd_query_pkey {
	struct pv_cmd_hdr hdr;
	uint8_t port_num;
	uint8_t index;
	uint8_t reserved[6];
};

struct pv_cmd_query_pkey_resp {
	struct pv_cmd_resp_hdr hdr;
	uint16_t pkey;
	uint8_t reserved[6];
};

struct pv_cmd_create_uc {
	struct pv_cmd_hdr hdr;
	uint64_t pfn64; /* of the context's UAR page */
};

/* The response to CREATE_UC, CREATE_PD and CREATE_SRQ. */
struct pv_cmd_handle_resp {
	struct pv_cmd_resp_hdr hdr;
	uint32_t handle;
	uint8_t reserved[4];
};

/* The request of CREATE_PD (`handle`: the context's), of QUERY_SRQ, and of all commands that
 * destroy an object, except DESTROY_BIND. */
struct pv_cmd_handle {
	struct pv_cmd_hdr hdr;
	uint32_t handle;
	uint8_t reserved[4];
};

struct pv_cmd_create_mr {
	struct pv_cmd_hdr hdr;
	uint64_t start;
	uint64_t length;
	uint64_t pdir_dma;
	uint32_t pd_handle;
	uint32_t access_flags;
	uint32_t flags;
	uint32_t nchunks; /* number of pages */
};

struct pv_cmd_create_mr_resp {
	struct pv_cmd_resp_hdr hdr;
	uint32_t mr_handle;
	uint32_t lkey;
	uint32_t rkey;
	uint8_t reserved[4];
};

struct pv_cmd_create_cq {
	struct pv_cmd_hdr hdr;
	uint64_t pdir_dma;
	uint32_t ctx_handle;
	uint32_t cqe;
	uint32_t nchunks;
	uint8_t reserved[4];
};

struct pv_cmd_create_cq_resp {
	struct pv_cmd_resp_hdr hdr;
	uint32_t cq_handle;
	uint32_t cqe;
};

struct pv_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
	uint32_t reserved;
};

struct pv_cmd_create_srq {
	struct pv_cmd_hdr hdr;
	uint64_t pdir_dma;
	uint32_t pd_handle;
	uint32_t nchunks;
	struct pv_srq_attr attrs;
	uint8_t srq_type;
	uint8_t reserved[7];
};

/* Bits of pv_cmd_modify_srq.attr_mask. */
#define PV_SRQ_MAX_WR (1 << 0)
#define PV_SRQ_LIMIT  (1 << 1)

struct pv_cmd_modify_srq {
	struct pv_cmd_hdr hdr;
	uint32_t srq_handle;
	uint32_t attr_mask;
	struct pv_srq_attr attrs;
};

struct pv_cmd_query_srq_resp {
	struct pv_cmd_resp_hdr hdr;
	struct pv_srq_attr attrs;
};

struct pv_cmd_create_qp {
	struct pv_cmd_hdr hdr;
	uint64_t pdir_dma;
	uint32_t pd_handle;
	uint32_t send_cq_handle;
	uint32_t recv_cq_handle;
	uint32_t srq_handle;
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
	uint32_t lkey;
	uint32_t access_flags;
	uint16_t
		total_chunks; /* pages: the header's, send_chunks, then those of receive requests */
	uint16_t send_chunks;
	uint16_t max_atomic_arg;
	uint8_t sq_sig_all;
	uint8_t qp_type;
	uint8_t is_srq;
	uint8_t reserved[3];
};

struct pv_cmd_create_qp_resp {
	struct pv_cmd_resp_hdr hdr;
	uint32_t qpn;
	uint32_t qp_handle;
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct pv_ah_attr {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t reserved;
	uint16_t dlid;
	uint16_t vlan_id;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t ah_flags;
	uint8_t port_num;
	uint8_t dmac[6];
	uint8_t reserved2;
};
_Static_assert(sizeof(struct pv_ah_attr) == 40, "driver's layout");

struct pv_qp_attr {
	uint32_t qp_state;
	uint32_t cur_qp_state;
	uint32_t path_mtu;
	uint32_t path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	uint32_t qp_access_flags;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint8_t reserved[5];
	struct {
		uint32_t max_send_wr;
		uint32_t max_recv_wr;
		uint32_t max_send_sge;
		uint32_t max_recv_sge;
		uint32_t max_inline_data;
		uint32_t reserved;
	} cap;
	struct pv_ah_attr ah_attr;
	struct pv_ah_attr alt_ah_attr;
};
_Static_assert(sizeof(struct pv_qp_attr) == 160, "driver's layout");

struct pv_cmd_modify_qp {
	struct pv_cmd_hdr hdr;
	uint32_t qp_handle;
	uint32_t attr_mask; /* values of enum ibv_qp_attr_mask */
	struct pv_qp_attr attrs;
};

struct pv_cmd_query_qp {
	struct pv_cmd_hdr hdr;
	uint32_t qp_handle;
	uint32_t attr_mask;
};

struct pv_cmd_query_qp_resp {
	struct pv_cmd_resp_hdr hdr;
	struct pv_qp_attr attrs;
};

struct pv_cmd_destroy_qp_resp {
	struct pv_cmd_resp_hdr hdr;
	uint32_t events_reported;
	uint8_t reserved[4];
};

struct pv_cmd_create_bind {
	struct pv_cmd_hdr hdr;
	uint32_t mtu;
	uint32_t vlan; /* PV_NO_VLAN: none */
	uint32_t index;
	uint8_t new_gid[16];
	uint8_t gid_type;
	uint8_t reserved[3];
};

struct pv_cmd_destroy_bind {
	struct pv_cmd_hdr hdr;
	uint32_t index;
	uint8_t dest_gid[16];
	uint8_t reserved[4];
};

union pv_request {
	struct pv_cmd_hdr hdr;
	struct pv_cmd_handle handle;
	struct pv_cmd_query_port query_port;
	struct pv_cmd_query_pkey query_pkey;
	struct pv_cmd_create_uc create_uc;
	struct pv_cmd_create_mr create_mr;
	struct pv_cmd_create_cq create_cq;
	struct pv_cmd_create_srq create_srq;
	struct pv_cmd_modify_srq modify_srq;
	struct pv_cmd_create_qp create_qp;
	struct pv_cmd_modify_qp modify_qp;
	struct pv_cmd_query_qp query_qp;
	struct pv_cmd_create_bind create_bind;
	struct pv_cmd_destroy_bind destroy_bind;
};

union pv_response {
	struct pv_cmd_resp_hdr hdr;
	struct pv_cmd_handle_resp handle;
	struct pv_cmd_query_port_resp query_port;
	struct pv_cmd_query_pkey_resp query_pkey;
	struct pv_cmd_create_mr_resp create_mr;
	struct pv_cmd_create_cq_resp create_cq;
	struct pv_cmd_query_srq_resp query_srq;
	struct pv_cmd_create_qp_resp create_qp;
	struct pv_cmd_query_qp_resp query_qp;
	struct pv_cmd_destroy_qp_resp destroy_qp;
};

#endif
