/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Builds packets: headers, payload, pad and ICRC. Requester, responder and cnp.c use these
 * functions. */
#ifndef URXE_WIRE_PACKET_BUILD_H
#define URXE_WIRE_PACKET_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/opcode.h>
#include <rxe/rxe.h>

#include "objects/qp.h"
#include "wire/header_fields.h"
#include "wire/icrc.h"

/* Fields of the BTH. */
struct build_bth {
	uint8_t opcode;
	bool solicited;
	bool ack_req;
	uint32_t dest_qpn;
	uint32_t psn;
	uint16_t pkey;
};

struct gso_run;

/* A packet that is being built. */
struct build {
	struct urxe_frame *frame;
	const struct header_template *header;
	uint8_t *start;   /* start of the headers: in `first`, or in the frame if it gets no ICRC */
	uint8_t *bth;     /* behind `start` */
	uint8_t *ext;     /* where the next extended header goes, behind `bth` */
	uint8_t *payload; /* in the frame, behind the headers */
	uint32_t headers; /* length of all headers, bytes */
	struct gso_run *run; /* set by build_allow_gso; NULL: the packet belongs to no run */
	bool gso_mark;       /* the packet has no payload, and gets the mark of gso_run.h */
	/*
	 * If the frame gets an ICRC: a copy of the headers and of the payload's first bytes, in
	 * which the ICRC masks fields. Another core may have the frame's cache lines, so these
	 * bytes of the frame are only written, not read. A frame without ICRC gets its headers in
	 * place: a copy from `first` would load bytes that smaller stores have just written, and so
	 * wait for these stores to complete.
	 */
	uint8_t first[ETH_LEN + VLAN_LEN + ICRC_FIRST];
};

/* Builds the headers up to UDP for a path; false: its source GID is not set. The QPNs select the
 * UDP source port if the path has no flow label. */
bool build_template(struct header_template *header, const struct urxe_dev *dev,
		    const struct urxe_path *path, uint32_t qpn, uint32_t remote_qpn);

/* Sets the IPv6 flow label of gso_run.h in the template of a connected QP whose path sets none. */
void build_label_flow(struct urxe_qp *qp);

/* Sum of the 16-bit words of an IPv4 header whose length, identification and
 * checksum are 0. */
uint32_t ipv4_sum(const uint8_t *ip);

/* Starts a packet: writes the template and the BTH. */
void build_start(struct build *b, struct urxe_frame *frame, const struct header_template *header,
		 const struct build_bth *bth);
/* Permits to add the packet of a connected QP to a UDP GSO run (wire/gso_run.h). Call it after
 * build_start and before build_finish. */
void build_allow_gso(struct build *b, const struct urxe_qp *qp);
/* Adds the pad, the lengths and the ICRC, sets frame->len, and counts the packet as sent. */
void build_finish(struct build *b, struct urxe_qp *qp, uint32_t payload_len);

/* Each function appends an extended header. `imm` is in network byte order, all other values are in
 * host byte order. */
void build_feth(struct build *b, const struct urxe_flush *flush);
void build_reth(struct build *b, uint64_t va, uint32_t rkey, uint32_t length);
void build_atomic_eth(struct build *b, const struct send_wqe *wqe);
void build_aeth(struct build *b, uint8_t syndrome, uint32_t msn);
void build_atomic_ack(struct build *b, uint64_t original);
void build_deth(struct build *b, uint32_t qkey, uint32_t src_qpn);
void build_imm(struct build *b, uint32_t imm);
void build_ieth(struct build *b, uint32_t rkey);

#endif
