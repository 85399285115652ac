/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* AETH syndromes (IBA volume 1, 9.7.5.2.1, tables 43 to 46). */
#ifndef URXE_WIRE_AETH_H
#define URXE_WIRE_AETH_H

#include <stdint.h>

#define AETH_TYPE(syndrome)  ((syndrome)&0xe0)
#define AETH_VALUE(syndrome) ((syndrome)&0x1f)

enum aeth_type { AETH_ACK = 0x00, AETH_RNR_NAK = 0x20, AETH_NAK = 0x60 };

/* Instead of a credit count: the responder has no end-to-end flow control. */
#define AETH_CREDITS_INVALID 0x1f
#define AETH_CREDITS_MAX     32768

enum aeth_nak {
	AETH_NAK_PSN_SEQUENCE = 0x60,
	AETH_NAK_INVALID_REQUEST = 0x61,
	AETH_NAK_REMOTE_ACCESS = 0x62,
	AETH_NAK_REMOTE_OP = 0x63,
};

/* Nanoseconds of an RNR timer code, 0 to 31 (table 45). */
uint64_t aeth_rnr_ns(uint8_t code);

/*
 * End-to-end credits: the number of receive requests that a responder has left (9.7.7.2.1). Codes 0
 * to 30 stand for 0 to 32,768: powers of two, and the numbers halfway between two consecutive
 * powers. aeth_credit_code rounds down.
 */
uint8_t aeth_credit_code(uint32_t n);
uint32_t aeth_credits(uint8_t code);

#endif
