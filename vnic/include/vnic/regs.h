/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registers, descriptors and shared area of vmxnet3, revisions 1 to 9, for the driver and the
 * device. Names and values are those of Linux' drivers/net/vmxnet3 (vmxnet3_defs.h, upt1_defs.h).
 * Bit fields are written as masks, so that each side reads a shared word once and decodes the copy.
 */
#ifndef URXE_VNIC_REGS_H
#define URXE_VNIC_REGS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "vmxnet3 is little-endian");

/* --- Registers: 32 bits wide, 8 bytes apart. */

#define VNIC_BAR0_SIZE 4096 /* registers of the data path */
#define VNIC_BAR1_SIZE 4096 /* registers of the configuration */
#define VNIC_BAR_SIZE  (VNIC_BAR0_SIZE + VNIC_BAR1_SIZE)

#define VMXNET3_REG_STRIDE  8
#define VMXNET3_REG_IMR     0x000 /* + 8 * vector; 1 masks it */
#define VMXNET3_REG_TXPROD  0x600 /* + 8 * queue: index after the last posted descriptor */
#define VMXNET3_REG_RXPROD  0x800 /* likewise, receive ring 0 */
#define VMXNET3_REG_RXPROD2 0xa00 /* likewise, receive ring 1 */
/*
 * Not in vmxnet3: 1 while the device's thread sleeps. A hypervisor notices a store to TXPROD;
 * shared memory does not, so the driver reads this register to decide whether it must wake the
 * device. Unused on a transport that traps stores.
 */
#define VNIC_REG_ASLEEP 0xc00
/* Not in vmxnet3: 1 while the driver may write frames to other processes' inboxes. */
#define VNIC_REG_BYPASS 0xc08
/* Not in vmxnet3: the number of VNIC_ATTACH_QPN_SET messages of this connection that the daemon has
 * handled, with success or not, modulo 2^32. The daemon writes it, the driver reads it. */
#define VNIC_REG_QPNS_HANDLED 0xc18
/*
 * Not in vmxnet3: a copy of a frame that the driver will send by its own packet socket, or to the
 * inbox of a peer. If the driver's process ends first, the daemon sends it; see
 * vnic_driver_set_last_frame.
 */
#define VNIC_REG_LAST_LENGTH 0xc10 /* bytes; 0: none */
#define VNIC_REG_LAST_FRAME  0xc80 /* VNIC_LAST_FRAME_MAX bytes */

#define VMXNET3_REG_VRRS 0x00 /* revision report (read) and selection (write) */
#define VMXNET3_REG_UVRS 0x08 /* the same for UPT */
#define VMXNET3_REG_DSAL 0x10 /* address of the shared area, low half */
#define VMXNET3_REG_DSAH 0x18 /* high half; 0 in both: none */
#define VMXNET3_REG_CMD  0x20 /* write a command, read its result */
#define VMXNET3_REG_MACL 0x28
#define VMXNET3_REG_MACH 0x30
#define VMXNET3_REG_ICR  0x38 /* INTx only */
#define VMXNET3_REG_ECR  0x40 /* write clears event bits */
#define VMXNET3_REG_DCR  0x48 /* capabilities of the device: offered (read), wanted (write) */
#define VMXNET3_REG_PTCR 0x88 /* capabilities of a passed-through device */

/*
 * Bit n: revision n + 1. The device offers a set, the driver selects one. Revision 2 adds details
 * about aggregated frames, which a device need not produce; 3 adds receive data rings, the size of
 * transmit data descriptors, and coalescing; 4 adds offloads for tunnels, and the choice of the
 * fields that are hashed; 6 adds the numbers of queues; 7 adds capabilities; 9 adds rings of time
 * stamps, and the offloads that a driver must not use.
 */
#define VMXNET3_REV_1     (1u << 0)
#define VMXNET3_REV_2     (1u << 1)
#define VMXNET3_REV_3     (1u << 2)
#define VMXNET3_REV_4     (1u << 3)
#define VMXNET3_REV_6     (1u << 5)
#define VMXNET3_REV_7     (1u << 6)
#define VMXNET3_REV_9     (1u << 8)
#define VMXNET3_REVISIONS ((VMXNET3_REV_9 << 1) - 1)
#define UPT1_VERSIONS     1u

/* Bits of the capability register DCR. A driver writes the wanted bits, and asks by GET_DCR0_REG
 * which of them it got. */
#define VMXNET3_CAP_UDP_RSS          (1u << 0)
#define VMXNET3_CAP_ESP_RSS_IP4      (1u << 1)
#define VMXNET3_CAP_GENEVE_CSUM      (1u << 2)
#define VMXNET3_CAP_GENEVE_TSO       (1u << 3)
#define VMXNET3_CAP_VXLAN_CSUM       (1u << 4)
#define VMXNET3_CAP_VXLAN_TSO        (1u << 5)
#define VMXNET3_CAP_GENEVE_OUTER     (1u << 6) /* the outer UDP checksum of segments */
#define VMXNET3_CAP_VXLAN_OUTER      (1u << 7)
#define VMXNET3_CAP_ESP_RSS_IP6      (1u << 9)
#define VMXNET3_CAP_LARGE_BAR        (1u << 16)
#define VMXNET3_CAP_OUT_OF_ORDER_RX  (1u << 17)
#define VMXNET3_PTCR_NO_PASS_THROUGH (1u << 31) /* PTCR has no capabilities; DCR alone counts */

enum vmxnet3_command {
	VMXNET3_CMD_FIRST_SET = (int)0xcafe0000,
	VMXNET3_CMD_ACTIVATE_DEV = VMXNET3_CMD_FIRST_SET,
	VMXNET3_CMD_QUIESCE_DEV,
	VMXNET3_CMD_RESET_DEV,
	VMXNET3_CMD_UPDATE_RX_MODE,
	VMXNET3_CMD_UPDATE_MAC_FILTERS,
	VMXNET3_CMD_UPDATE_VLAN_FILTERS,
	VMXNET3_CMD_UPDATE_RSSIDT,
	VMXNET3_CMD_UPDATE_IML,
	VMXNET3_CMD_UPDATE_PMCFG,
	VMXNET3_CMD_UPDATE_FEATURE,
	VMXNET3_CMD_SET_COALESCE = VMXNET3_CMD_FIRST_SET + 14,
	VMXNET3_CMD_REGISTER_MEMREGS,
	VMXNET3_CMD_SET_RSS_FIELDS,
	VMXNET3_CMD_SET_RING_BUFFER_SIZE = VMXNET3_CMD_FIRST_SET + 19,
	VMXNET3_CMD_FIRST_GET = (int)0xf00d0000,
	VMXNET3_CMD_GET_QUEUE_STATUS = VMXNET3_CMD_FIRST_GET,
	VMXNET3_CMD_GET_STATS,
	VMXNET3_CMD_GET_LINK,
	VMXNET3_CMD_GET_PERM_MAC_LO,
	VMXNET3_CMD_GET_PERM_MAC_HI,
	VMXNET3_CMD_GET_DID_LO,
	VMXNET3_CMD_GET_DID_HI,
	VMXNET3_CMD_GET_DEV_EXTRA_INFO,
	VMXNET3_CMD_GET_CONF_INTR,
	VMXNET3_CMD_GET_ADAPTIVE_RING_INFO,
	VMXNET3_CMD_GET_TXDATA_DESC_SIZE,
	VMXNET3_CMD_GET_COALESCE,
	VMXNET3_CMD_GET_RSS_FIELDS,
	VMXNET3_CMD_GET_MAX_QUEUES_CONF = VMXNET3_CMD_FIRST_GET + 15,
	VMXNET3_CMD_GET_DCR0_REG = VMXNET3_CMD_FIRST_GET + 18,
	VMXNET3_CMD_GET_TSRING_DESC_SIZE,
	VMXNET3_CMD_GET_DISABLED_OFFLOADS,
};

/* GET_LINK: megabits per second in the upper half, bit 0 set while the link is up. */
#define VMXNET3_LINK_UP(mbps) ((uint32_t)(mbps) << 16 | 1)

/* GET_CONF_INTR: type in bits 0-1, mask mode in bits 2-3. */
#define VMXNET3_IT_MSIX  3
#define VMXNET3_IMM_AUTO 0

/* GET_ADAPTIVE_RING_INFO */
#define VMXNET3_DISABLE_ADAPTIVE_RING 1

/* GET_MAX_QUEUES_CONF: the numbers of transmit and receive queues. */
#define VMXNET3_MAX_QUEUES(tx, rx) ((uint32_t)(tx) | (uint32_t)(rx) << 8)

/* Bits of the answer to GET_DISABLED_OFFLOADS. */
#define VMXNET3_OFFLOAD_LRO (1u << 1)

/* GET_DID: device ID and revision in PCI configuration space. */
#define VMXNET3_PCI_DEVICE_ID 0x07b0
#define VMXNET3_PCI_REVISION  1

/* --- Descriptors: 16 bytes. The generation bit says whether the driver or the device owns one. */

#define VMXNET3_INIT_GEN 1 /* generation of a ring's first lap; flips with each lap */

struct vmxnet3_tx_desc {
	uint64_t addr;
	uint32_t len;   /* VMXNET3_TXD_* of this dword */
	uint32_t flags; /* VMXNET3_TXD_* of this dword */
};

#define VMXNET3_TXD_LEN          0x3fffu /* 0 means 16384 */
#define VMXNET3_TXD_LEN_ZERO     16384u
#define VMXNET3_TXD_GEN          (1u << 14)
#define VMXNET3_TXD_OCO          (1u << 15) /* the outer UDP checksum of a tunnel */
#define VMXNET3_TXD_DTYPE        (1u << 16)
#define VMXNET3_TXD_EXT1         (1u << 17) /* CSUM and TSO of the inner packet: revision 7 */
#define VMXNET3_TXD_MSSCOF_SHIFT 18         /* segment size, or offset of the checksum field */
#define VMXNET3_TXD_HLEN         0x3ffu /* in `flags`, as the following masks: bytes of headers */
#define VMXNET3_TXD_OM           (3u << 10) /* VMXNET3_OM_* */
#define VMXNET3_TXD_EOP          (1u << 12)
#define VMXNET3_TXD_CQ           (1u << 13) /* completion wanted */
#define VMXNET3_TXD_TI           (1u << 15) /* insert a VLAN tag */
#define VMXNET3_TXD_TCI_SHIFT    16         /* the tag */

/*
 * Offload modes. CSUM: hlen is the offset at which the sum starts; TSO: the length of all headers.
 * ENCAP, and CSUM and TSO with EXT1: hlen is the length of all headers, the inner ones included.
 * ENCAP segments if MSSCOF is not 0.
 */
#define VMXNET3_OM_NONE  (0u << 10)
#define VMXNET3_OM_ENCAP (1u << 10) /* tunnels: revisions 4 to 6 */
#define VMXNET3_OM_CSUM  (2u << 10)
#define VMXNET3_OM_TSO   (3u << 10)

struct vmxnet3_tx_comp {
	uint32_t index; /* bits 0-11: descriptor with EOP */
	uint32_t reserved[2];
	uint32_t gen; /* VMXNET3_CD_* */
};

struct vmxnet3_rx_desc {
	uint64_t addr;
	uint32_t len; /* VMXNET3_RXD_* */
	uint32_t reserved;
};

#define VMXNET3_RXD_LEN   0x3fffu
#define VMXNET3_RXD_BODY  (1u << 14) /* buffer type: 0 takes a frame's head, 1 its body */
#define VMXNET3_RXD_DTYPE (1u << 15)
#define VMXNET3_RXD_GEN   (1u << 31)

struct vmxnet3_rx_comp {
	uint32_t index;    /* VMXNET3_RCD_* of this dword, as below */
	uint32_t rss_hash; /* without meaning if the RSS type is NONE */
	uint32_t len;
	uint32_t gen; /* VMXNET3_CD_* too */
};

#define VMXNET3_RCD_EOP (1u << 14)
#define VMXNET3_RCD_SOP (1u << 15)
/* 10 bits. With n queues, 0 to n - 1 are ring 0 of each queue, n to 2n - 1 ring 1, and 2n to 3n - 1
 * the data rings. */
#define VMXNET3_RCD_RQID_SHIFT 16
#define VMXNET3_RCD_RQID       (0x3ffu << VMXNET3_RCD_RQID_SHIFT)
#define VMXNET3_RCD_RSS_SHIFT  26 /* 4 bits: VMXNET3_RCD_RSS_TYPE_* */
#define VMXNET3_RCD_RSS        (0xfu << VMXNET3_RCD_RSS_SHIFT)
#define VMXNET3_RCD_CNC        (1u << 30) /* checksum not calculated */
#define VMXNET3_RCD_LEN        0x3fffu    /* in `len`, as the next two masks */
#define VMXNET3_RCD_TS         (1u << 15) /* a VLAN tag was stripped */
#define VMXNET3_RCD_TCI_SHIFT  16
#define VMXNET3_RCD_TUC                                                           \
	(1u << 16) /* in `gen`, as the following masks: TCP or UDP checksum right \
		    */
#define VMXNET3_RCD_UDP (1u << 17)
#define VMXNET3_RCD_TCP (1u << 18)
#define VMXNET3_RCD_IPC (1u << 19) /* IP checksum right */
#define VMXNET3_RCD_V6  (1u << 20)
#define VMXNET3_RCD_V4  (1u << 21)
#define VMXNET3_RCD_FRG (1u << 22) /* a fragment */

/* Which fields of a received frame were hashed. */
enum vmxnet3_rss_type {
	VMXNET3_RCD_RSS_TYPE_NONE,
	VMXNET3_RCD_RSS_TYPE_IPV4,
	VMXNET3_RCD_RSS_TYPE_TCPIPV4,
	VMXNET3_RCD_RSS_TYPE_IPV6,
	VMXNET3_RCD_RSS_TYPE_TCPIPV6,
	VMXNET3_RCD_RSS_TYPE_UDPIPV4,
	VMXNET3_RCD_RSS_TYPE_UDPIPV6,
	VMXNET3_RCD_RSS_TYPE_ESPIPV4,
	VMXNET3_RCD_RSS_TYPE_ESPIPV6,
};

#define VMXNET3_CD_INDEX      0xfffu /* both kinds: descriptor index */
#define VMXNET3_CD_TYPE_SHIFT 24
#define VMXNET3_CD_GEN        (1u << 31)
#define VMXNET3_CDTYPE_TXCOMP 0u
#define VMXNET3_CDTYPE_RXCOMP 3u

#define VMXNET3_MAX_TXD_PER_PKT        16 /* for a packet without segmentation */
#define VMXNET3_RXDATA_DESC_SIZE_ALIGN 64
#define VMXNET3_RXDATA_DESC_MAX_SIZE   2048
#define VMXNET3_RING_BA_ALIGN          512
#define VMXNET3_RING_SIZE_ALIGN        32
#define VMXNET3_RING_MAX_SIZE          4096 /* tx, tx completion, rx */
#define VMXNET3_RC_RING_MAX            8192

/* --- The shared area, filled in by the driver before ACTIVATE_DEV. */

#define VMXNET3_REV1_MAGIC       3133079265u
#define VMXNET3_MAX_TX_QUEUES    8
#define VMXNET3_MAX_RX_QUEUES    16
#define VMXNET3_MAX_INTRS        25 /* one for each queue, one for events */
#define VMXNET3_QUEUE_DESC_ALIGN 128
#define VMXNET3_MIN_MTU          60
#define VMXNET3_MAX_MTU          9000

struct vmxnet3_driver_info {
	uint32_t version;
	uint32_t gos; /* bits 0-1 word size (2 = 64), 2-5 guest system */
	uint32_t revisions;
	uint32_t upt_versions;
};

struct vmxnet3_misc_conf {
	struct vmxnet3_driver_info driver_info;
	uint64_t upt_features; /* UPT1_F_*: receive offloads that the driver requests */
	uint64_t driver_data_addr;
	uint64_t queue_desc_addr; /* transmit queues' first, then receive queues' */
	uint32_t driver_data_len;
	uint32_t queue_desc_len;
	uint32_t mtu;
	uint16_t max_rx_sg;
	uint8_t tx_queues;
	uint8_t rx_queues;
	uint32_t reserved[4];
};

#define UPT1_F_RXCSUM (1u << 0) /* checksums verified */
#define UPT1_F_RSS    (1u << 1)
#define UPT1_F_RXVLAN (1u << 2) /* VLAN tags stripped */
#define UPT1_F_LRO    (1u << 3) /* frames of a TCP connection aggregated */

struct vmxnet3_intr_conf {
	uint8_t auto_mask;
	uint8_t vectors;
	uint8_t event_vector;
	uint8_t moderation[VMXNET3_MAX_INTRS];
	uint32_t control;
	uint32_t reserved[2];
};

#define VMXNET3_VFT_SIZE (4096 / 32)

struct vmxnet3_rx_filter_conf {
	uint32_t mode;          /* VMXNET3_RXM_* */
	uint16_t multicast_len; /* bytes of the table: six for each group's MAC */
	uint16_t reserved;
	uint64_t multicast_addr;
	uint32_t vlan[VMXNET3_VFT_SIZE]; /* one bit for each VLAN ID that the driver receives */
};

#define VMXNET3_RXM_UCAST     0x01 /* to this station */
#define VMXNET3_RXM_MCAST     0x02 /* to groups of the table */
#define VMXNET3_RXM_BCAST     0x04
#define VMXNET3_RXM_ALL_MULTI 0x08
#define VMXNET3_RXM_PROMISC   0x10

struct vmxnet3_variable_conf {
	uint32_t version;
	uint32_t len; /* bytes */
	uint64_t addr;
};

#define UPT1_RSS_KEY_SIZE   40
#define UPT1_RSS_TABLE_SIZE 128

/*
 * Receive side scaling with UPT1_F_RSS: `rss` of the shared area points to this. A frame goes to
 * the queue of the table's entry at (hash mod table_size).
 */
struct upt1_rss_conf {
	uint16_t types;      /* UPT1_RSS_HASH_TYPE_* */
	uint16_t function;   /* UPT1_RSS_HASH_FUNC_* */
	uint16_t key_size;   /* bytes, UPT1_RSS_KEY_SIZE at most */
	uint16_t table_size; /* entries, UPT1_RSS_TABLE_SIZE at most */
	uint8_t key[UPT1_RSS_KEY_SIZE];
	uint8_t table[UPT1_RSS_TABLE_SIZE];
};

#define UPT1_RSS_HASH_TYPE_IPV4     0x01
#define UPT1_RSS_HASH_TYPE_TCP_IPV4 0x02
#define UPT1_RSS_HASH_TYPE_IPV6     0x04
#define UPT1_RSS_HASH_TYPE_TCP_IPV6 0x08

#define UPT1_RSS_HASH_FUNC_NONE     0
#define UPT1_RSS_HASH_FUNC_TOEPLITZ 1

/* SET_RSS_FIELDS, GET_RSS_FIELDS: for which packets more than the addresses is hashed. */
#define VMXNET3_RSS_FIELDS_TCPIP4 0x01
#define VMXNET3_RSS_FIELDS_TCPIP6 0x02
#define VMXNET3_RSS_FIELDS_UDPIP4 0x04
#define VMXNET3_RSS_FIELDS_UDPIP6 0x08
#define VMXNET3_RSS_FIELDS_ESPIP4 0x10
#define VMXNET3_RSS_FIELDS_ESPIP6 0x20
#define VMXNET3_RSS_FIELDS        0x3f

struct vmxnet3_driver_shared {
	uint32_t magic;
	uint32_t size; /* not checked: drivers write 0 */
	struct vmxnet3_misc_conf misc;
	struct vmxnet3_intr_conf intr;
	struct vmxnet3_rx_filter_conf rx_filter;
	struct vmxnet3_variable_conf rss, wake_up, plugin;
	uint32_t ecr; /* VMXNET3_ECR_*, set by the device */
	uint32_t reserved;
	union {
		struct vmxnet3_variable_conf command_info; /* for SET_ and GET_COALESCE */
		uint32_t rss_fields;                       /* for SET_RSS_FIELDS */
	};
};

#define VMXNET3_ECR_RQERR (1u << 0)
#define VMXNET3_ECR_TQERR (1u << 1)
#define VMXNET3_ECR_LINK  (1u << 2)

/* The coalescing of interrupts, to which command_info points. */
struct vmxnet3_coalesce_scheme {
	uint32_t mode;    /* VMXNET3_COALESCE_* */
	uint32_t para[3]; /* static: depths of transmit, its completion, receive; RBC: rate */
};

#define VMXNET3_COALESCE_DISABLED 0
#define VMXNET3_COALESCE_ADAPT    1
#define VMXNET3_COALESCE_STATIC   2
#define VMXNET3_COALESCE_RBC      3

#define VMXNET3_COAL_STATIC_MAX_DEPTH 128
#define VMXNET3_COAL_RBC_MIN_RATE     100 /* interrupts per second */
#define VMXNET3_COAL_RBC_MAX_RATE     100000

struct vmxnet3_queue_status {
	uint8_t stopped;
	uint8_t pad[3];
	uint32_t error; /* VMXNET3_ERR_* */
};

#define VMXNET3_ERR_BIG_PKT      0x80000002u
#define VMXNET3_ERR_DESC_NOT_SPT 0x80000003u
#define VMXNET3_ERR_SMALL_BUF    0x80000004u
#define VMXNET3_ERR_TXD_INVALID  0x80000007u

/*
 * Counters that GET_STATS fills in, for both kinds of queues: pairs of frames and bytes, then
 * counts of frames.
 */
enum upt1_tx_stat {
	UPT1_TX_TSO, /* TCP packets that the device segmented, counted as frames after
			segmentation */
	UPT1_TX_TSO_BYTES,
	UPT1_TX_UCAST,
	UPT1_TX_UCAST_BYTES,
	UPT1_TX_MCAST,
	UPT1_TX_MCAST_BYTES,
	UPT1_TX_BCAST,
	UPT1_TX_BCAST_BYTES,
	UPT1_TX_ERROR,
	UPT1_TX_DISCARD,
	UPT1_TX_STATS,
};

enum upt1_rx_stat {
	UPT1_RX_LRO,
	UPT1_RX_LRO_BYTES,
	UPT1_RX_UCAST,
	UPT1_RX_UCAST_BYTES,
	UPT1_RX_MCAST,
	UPT1_RX_MCAST_BYTES,
	UPT1_RX_BCAST,
	UPT1_RX_BCAST_BYTES,
	UPT1_RX_OUT_OF_BUF,
	UPT1_RX_ERROR,
	UPT1_RX_STATS,
};

struct vmxnet3_tx_queue_desc {
	uint32_t num_deferred;
	uint32_t threshold;
	uint64_t reserved0;
	uint64_t ring_addr;
	uint64_t data_ring_addr;
	uint64_t comp_ring_addr;
	uint64_t driver_data_addr;
	uint64_t reserved1;
	uint32_t ring_size;
	uint32_t data_ring_size;
	uint32_t comp_ring_size;
	uint32_t driver_data_len;
	uint8_t vector;
	uint8_t pad1;
	uint16_t data_desc_size;
	uint8_t pad2[4];
	struct vmxnet3_queue_status status;
	uint64_t stats[UPT1_TX_STATS];
	uint8_t pad3[88];
};

struct vmxnet3_rx_queue_desc {
	uint8_t update_prod; /* set by a device that requests writes of RXPROD */
	uint8_t pad0[7];
	uint64_t reserved0;
	uint64_t ring_addr[2];
	uint64_t comp_ring_addr;
	uint64_t driver_data_addr;
	uint64_t data_ring_addr;
	uint32_t ring_size[2];
	uint32_t comp_ring_size;
	uint32_t driver_data_len;
	uint8_t vector;
	uint8_t pad1;
	uint16_t data_desc_size;
	uint8_t pad2[4];
	struct vmxnet3_queue_status status;
	uint64_t stats[UPT1_RX_STATS];
	uint8_t pad3[88];
};

/* One transmit and one receive queue: the queues of urxe's driver. */
struct vmxnet3_queue_pair {
	struct vmxnet3_tx_queue_desc tx;
	struct vmxnet3_rx_queue_desc rx;
};

static_assert(sizeof(struct vmxnet3_tx_desc) == 16, "");
static_assert(sizeof(struct vmxnet3_tx_comp) == 16, "");
static_assert(sizeof(struct vmxnet3_rx_desc) == 16, "");
static_assert(sizeof(struct vmxnet3_rx_comp) == 16, "");
static_assert(sizeof(struct vmxnet3_misc_conf) == 72, "");
static_assert(sizeof(struct vmxnet3_intr_conf) == 40, "");
static_assert(offsetof(struct vmxnet3_driver_shared, misc.queue_desc_addr) == 40, "");
static_assert(offsetof(struct vmxnet3_driver_shared, misc.mtu) == 56, "");
static_assert(offsetof(struct vmxnet3_driver_shared, misc.tx_queues) == 62, "");
static_assert(offsetof(struct vmxnet3_driver_shared, intr) == 80, "");
static_assert(offsetof(struct vmxnet3_driver_shared, intr.control) == 108, "");
static_assert(offsetof(struct vmxnet3_driver_shared, rx_filter) == 120, "");
static_assert(offsetof(struct vmxnet3_driver_shared, ecr) == 696, "");
static_assert(offsetof(struct vmxnet3_driver_shared, command_info) == 704, "");
static_assert(offsetof(struct vmxnet3_driver_shared, rss) == 648, "");
static_assert(sizeof(struct vmxnet3_driver_shared) == 720, "");
static_assert(sizeof(struct upt1_rss_conf) == 176, "");
static_assert(VMXNET3_CMD_SET_RSS_FIELDS == (int)0xcafe0010, "");
static_assert(VMXNET3_CMD_GET_RSS_FIELDS == (int)0xf00d000c, "");
static_assert(sizeof(struct vmxnet3_coalesce_scheme) == 16, "");
static_assert(sizeof(struct vmxnet3_tx_queue_desc) == 256, "");
static_assert(offsetof(struct vmxnet3_tx_queue_desc, ring_size) == 56, "");
static_assert(offsetof(struct vmxnet3_tx_queue_desc, vector) == 72, "");
static_assert(offsetof(struct vmxnet3_tx_queue_desc, status) == 80, "");
static_assert(offsetof(struct vmxnet3_tx_queue_desc, stats) == 88, "");
static_assert(sizeof(struct vmxnet3_rx_queue_desc) == 256, "");
static_assert(offsetof(struct vmxnet3_rx_queue_desc, ring_size) == 56, "");
static_assert(offsetof(struct vmxnet3_rx_queue_desc, vector) == 72, "");
static_assert(offsetof(struct vmxnet3_rx_queue_desc, status) == 80, "");

/* --- Not in vmxnet3: a frame without FCS, from the MTU. */
#define VNIC_ETH_HEADER     14
#define VNIC_FRAME_MAX(mtu) ((uint32_t)(mtu) + VNIC_ETH_HEADER + 4 /* 802.1Q tag */)

#endif
