/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * BTH opcodes (IBA volume 1, 9.2 and table 38; Annex A17 for CNP, A19 for FLUSH
 * and ATOMIC WRITE).
 *
 * The table has one row for each of the 256 values. `known` is false for undefined opcodes and for
 * opcodes that urxe does not support.
 */
#ifndef URXE_RXE_OPCODE_H
#define URXE_RXE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* Service types, in the top three bits. */
enum urxe_service {
	URXE_SERVICE_RC = 0x00,
	URXE_SERVICE_UC = 0x20,
	URXE_SERVICE_RD = 0x40,
	URXE_SERVICE_UD = 0x60,
	URXE_SERVICE_CNP = 0x80,
	URXE_SERVICE_XRC = 0xa0,
};

/* Operations, in the low five bits. */
enum urxe_operation {
	URXE_OP_SEND_FIRST = 0x00,
	URXE_OP_SEND_MIDDLE = 0x01,
	URXE_OP_SEND_LAST = 0x02,
	URXE_OP_SEND_LAST_IMM = 0x03,
	URXE_OP_SEND_ONLY = 0x04,
	URXE_OP_SEND_ONLY_IMM = 0x05,
	URXE_OP_WRITE_FIRST = 0x06,
	URXE_OP_WRITE_MIDDLE = 0x07,
	URXE_OP_WRITE_LAST = 0x08,
	URXE_OP_WRITE_LAST_IMM = 0x09,
	URXE_OP_WRITE_ONLY = 0x0a,
	URXE_OP_WRITE_ONLY_IMM = 0x0b,
	URXE_OP_READ_REQUEST = 0x0c,
	URXE_OP_READ_RESPONSE_FIRST = 0x0d,
	URXE_OP_READ_RESPONSE_MIDDLE = 0x0e,
	URXE_OP_READ_RESPONSE_LAST = 0x0f,
	URXE_OP_READ_RESPONSE_ONLY = 0x10,
	URXE_OP_ACKNOWLEDGE = 0x11,
	URXE_OP_ATOMIC_ACKNOWLEDGE = 0x12,
	URXE_OP_COMPARE_SWAP = 0x13,
	URXE_OP_FETCH_ADD = 0x14,
	URXE_OP_SEND_LAST_INV = 0x16,
	URXE_OP_SEND_ONLY_INV = 0x17,
	URXE_OP_FLUSH = 0x1c,
	URXE_OP_ATOMIC_WRITE = 0x1d,
	URXE_OP_CNP = 0x01, /* with URXE_SERVICE_CNP */
};

#define URXE_OPCODE_SERVICE(opcode)   ((opcode)&0xe0)
#define URXE_OPCODE_OPERATION(opcode) ((opcode)&0x1f)

/* Properties of an opcode. "Only" packets have START and END. */
enum urxe_opcode_flag {
	URXE_OPF_REQUEST = 1u << 0,  /* goes to the responder */
	URXE_OPF_RESPONSE = 1u << 1, /* goes to the requester */
	URXE_OPF_SEND = 1u << 2,
	URXE_OPF_WRITE = 1u << 3,
	URXE_OPF_READ = 1u << 4,
	URXE_OPF_ATOMIC = 1u << 5,
	URXE_OPF_ACK = 1u << 6,
	URXE_OPF_START = 1u << 7,   /* first packet of its message */
	URXE_OPF_END = 1u << 8,     /* last packet of its message */
	URXE_OPF_PAYLOAD = 1u << 9, /* may carry payload */
	/* Extended headers, in wire order. */
	URXE_OPF_DETH = 1u << 10,
	URXE_OPF_RETH = 1u << 11,
	URXE_OPF_ATOMIC_ETH = 1u << 12,
	URXE_OPF_AETH = 1u << 13,
	URXE_OPF_ATOMIC_ACK_ETH = 1u << 14,
	URXE_OPF_IMM = 1u << 15,
	URXE_OPF_IETH = 1u << 16,
	URXE_OPF_XRCETH = 1u << 17, /* the first extended header */
	URXE_OPF_FETH = 1u << 18,   /* in front of the RETH */
	/* Operations, continued. */
	URXE_OPF_FLUSH = 1u << 19,
	URXE_OPF_ATOMIC_WRITE = 1u << 20,
};

/* Requests with a response of their own, which take a responder resource. */
#define URXE_OPF_RESOURCE (URXE_OPF_READ | URXE_OPF_ATOMIC | URXE_OPF_FLUSH | URXE_OPF_ATOMIC_WRITE)

struct urxe_opcode_info {
	const char *name; /* "RC_SEND_FIRST"; NULL for undefined opcodes */
	uint32_t flags;   /* urxe_opcode_flag */
	uint8_t hdr_len;  /* BTH and extended headers, bytes */
	bool known;       /* the engine supports it */
};

extern const struct urxe_opcode_info urxe_opcodes[256];

#endif
