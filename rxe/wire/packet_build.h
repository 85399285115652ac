/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writing packets: headers, payload, pad and ICRC into a frame. */
#ifndef URXE_BUILD_H
#define URXE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/opcode.h>
#include <rxe/rxe.h>

#include "objects/qp.h"
#include "wire/header_fields.h"
#include "wire/icrc.h"

/* Bytes of payload from which on a CRC of its own for the headers is the lesser cost. */
#define BUILD_LARGE 1024

/* What a packet's BTH says beyond the QP's own facts. */
struct build_bth {
	uint8_t opcode;
	bool solicited;
	bool ack_req;
	uint32_t dest_qpn;
	uint32_t psn;
	uint16_t pkey;
};

/* A packet in the making. */
struct build {
	struct urxe_frame *frame;
	const struct header_template *header;
	uint8_t *bth;     /* among the first bytes */
	uint8_t *ext;     /* extended headers go here */
	uint8_t *payload; /* in the frame, behind the opcode's headers, */
	uint32_t headers; /* which have so many bytes */
	uint32_t crc;  /* of all up to the payload's end, where that goes on while it is copied, */
	bool with_crc; /* as it does here */
	/*
	 * Its headers, until they are complete: the frame may be in memory whose lines another
	 * core has, and is not read. What the ICRC leaves out is masked here.
	 */
	uint8_t first[ETH_LEN + VLAN_LEN + ICRC_FIRST];
};

/* Makes the headers up to UDP for a path; false where its source address is gone. */
bool build_template(struct header_template *header, const struct urxe_dev *dev,
		    const struct urxe_path *path, uint32_t flow);

/* Lays out a packet with the template and BTH written. */
void build_start(struct build *b, struct urxe_frame *frame, const struct header_template *header,
		 const struct build_bth *bth);
/*
 * Before a payload of so many bytes is copied, and behind all headers. Returns the CRC that is to
 * go on with it (mr_read); NULL: build_finish computes it.
 */
uint32_t *build_payload_crc(struct build *b, const struct urxe_qp *qp, uint32_t payload_len);
/* Pads the payload, completes the lengths and the ICRC, counts the packet. */
void build_finish(struct build *b, struct urxe_qp *qp, uint32_t payload_len);

void build_feth(struct build *b, const struct urxe_flush *flush);
void build_reth(struct build *b, uint64_t va, uint32_t rkey, uint32_t length);
void build_atomic_eth(struct build *b, const struct send_wqe *wqe);
void build_aeth(struct build *b, uint8_t syndrome, uint32_t msn);
void build_atomic_ack(struct build *b, uint64_t original);
void build_deth(struct build *b, uint32_t qkey, uint32_t src_qpn);
void build_imm(struct build *b, uint32_t imm);
void build_ieth(struct build *b, uint32_t rkey);

#endif
