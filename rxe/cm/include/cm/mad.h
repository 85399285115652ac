/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of the communication management class (IBA volume 1, 13.4.3 and 12.6).
 *
 * A message is decoded into host byte order, and built from the same structure. For each message
 * one table of fields (mad.c) serves both directions. Addresses and private data stay bytes in
 * network byte order. Fields that urxe does not use are built as 0, and not decoded: Q_Keys of a
 * REQ and a REP; packet rate and Subnet Local of the path; alternate paths; additional information
 * of a SIDR_REP. All functions are thread-safe.
 */
#ifndef URXE_CM_MAD_H
#define URXE_CM_MAD_H

#include <stdint.h>

#define CM_MAD_LEN 256
#define CM_QKEY    0x80010000u /* of QP1 (IBA 10.2.5) */

/* Bytes of private data; a message always has all of them, padded with zeros. */
#define CM_REQ_PRIVATE      92
#define CM_MRA_PRIVATE      222
#define CM_REJ_PRIVATE      148
#define CM_REP_PRIVATE      196
#define CM_RTU_PRIVATE      224
#define CM_DREQ_PRIVATE     220
#define CM_DREP_PRIVATE     224
#define CM_SIDR_REQ_PRIVATE 216
#define CM_SIDR_REP_PRIVATE 136
#define CM_PRIVATE_MAX      224

#define CM_ARI_LEN 72 /* additional reject information */

/* Attribute IDs (IBA 16.7.3). */
enum cm_attr {
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
	CM_SIDR_REQ = 0x17,
	CM_SIDR_REP = 0x18,
	CM_LAP = 0x19, /* alternate paths: recognised, not supported */
	CM_APR = 0x1a,
};

/* The message that an MRA or REJ answers (IBA 12.6.6.1, 12.6.7.1). */
enum cm_about { CM_ABOUT_REQ, CM_ABOUT_REP, CM_ABOUT_OTHER };

/* Path MTU: 256 << (n - 1) bytes. The other values of its 4 bits are reserved. */
#define CM_MTU_MIN 1
#define CM_MTU_MAX 5

/* Transport service type (IBA 12.7.7). */
enum cm_service { CM_SERVICE_RC, CM_SERVICE_UC };

/* Reasons of a REJ that urxe sends (IBA 12.6.7.2); peers may send others. */
enum cm_reason {
	CM_REJ_TIMEOUT = 4,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_INVALID_SERVICE_TYPE = 9,
	CM_REJ_STALE = 10,
	CM_REJ_INVALID_MTU = 26,
	CM_REJ_CONSUMER = 28,
	CM_REJ_VENDOR_OPTION = 35, /* not supported */
};

/* Status of a SIDR_REP that urxe sends (IBA 12.11.2.1); peers may send others. */
enum cm_sidr_status { CM_SIDR_OK, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECT };

/* Times are exponents: 4.096 us * 2^t. MTU, counts and depths are as in the QP's attributes. */
struct cm_req {
	uint32_t local_id;
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qpn;
	uint32_t psn; /* PSN of the first packet that the receiver of the REQ will send */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t remote_response; /* time within which the receiver has to answer a message */
	uint8_t local_response;  /* time within which the sender has to answer a message */
	uint8_t service;         /* enum cm_service, or another 2-bit number */
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t max_cm_retries;
	uint8_t mtu; /* of the path, 1 = 256 to 5 = 4096 */
	uint8_t srq;
	uint16_t pkey;
	/* The primary path, as the sender sees it. */
	uint16_t local_lid;
	uint16_t remote_lid;
	uint8_t local_gid[16];
	uint8_t remote_gid[16];
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t ack_timeout;
};

struct cm_mra {
	uint32_t local_id, remote_id;
	uint8_t about;   /* enum cm_about */
	uint8_t timeout; /* time, an exponent, within which the sender will answer */
};

struct cm_rej {
	uint32_t local_id, remote_id;
	uint8_t about;
	uint8_t ari_len;
	uint16_t reason;
	uint8_t ari[CM_ARI_LEN];
};

struct cm_rep {
	uint32_t local_id, remote_id;
	uint64_t ca_guid;
	uint32_t qpn;
	uint32_t psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t ack_delay;
	uint8_t flow_control;
	uint8_t rnr_retry_count;
	uint8_t srq;
};

/* RTU and DREP; DREQ, which also has the QPN of its receiver. */
struct cm_pair {
	uint32_t local_id, remote_id;
	uint32_t remote_qpn;
};

struct cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
};

struct cm_sidr_rep {
	uint32_t request_id;
	uint8_t status; /* enum cm_sidr_status */
	uint32_t qpn;
	uint64_t service_id;
	uint32_t qkey;
};

/* Enhanced connection establishment: options of the sender's adapter, which only adapters of the
 * same vendor understand. All 0: none. The connection manager passes them on unchanged. */
struct cm_ece {
	uint32_t vendor_id; /* 24 bits; in a REQ and a REP */
	uint32_t options;   /* attribute modifier of the MAD's header */
};

struct cm_mad {
	uint16_t attr; /* enum cm_attr; selects the member of the union */
	uint64_t tid;
	struct cm_ece ece;
	union {
		struct cm_req req;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_rep rep;
		struct cm_pair pair; /* RTU, DREQ, DREP */
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
	};
	uint8_t private_data[CM_PRIVATE_MAX];
};

/* Bytes of private data in a message; 0 for attributes other than CM_REQ to CM_SIDR_REP. */
uint32_t cm_private_len(uint16_t attr);

/*
 * Decodes a MAD. -EINVAL: another class or version, or its method is not Send; -EOPNOTSUPP: an
 * unsupported message, whose attr and tid are set.
 */
int cm_mad_parse(struct cm_mad *mad, const uint8_t bytes[CM_MAD_LEN]);
/* Encodes a MAD; mad->attr is one of CM_REQ to CM_SIDR_REP. A number too wide for its field loses
 * its top bits. */
void cm_mad_build(const struct cm_mad *mad, uint8_t bytes[CM_MAD_LEN]);

#endif
