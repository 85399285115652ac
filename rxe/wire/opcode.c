/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <rxe/opcode.h>

#define BTH    12
#define DETH   8
#define RETH   16
#define ATOMIC 28
#define AETH   4
#define ATMACK 8
#define IMM    4
#define IETH   4
#define FETH   4
#define XRCETH 4

#define REQ    URXE_OPF_REQUEST
#define PAY    URXE_OPF_PAYLOAD
#define RSP    URXE_OPF_RESPONSE
#define FIRST  URXE_OPF_START
#define MIDDLE 0u
#define LAST   URXE_OPF_END
#define ONLY   (URXE_OPF_START | URXE_OPF_END)

/* One row: service, operation, flags, length of extended headers, whether the engine supports it.
 */
#define ROW(svc, op, row_flags, ext, speaks) \
	[URXE_SERVICE_##svc | URXE_OP_##op] = {#svc "_" #op, (row_flags), BTH + (ext), (speaks)}

/* Rows of requests; `x` is the length of the XRC header, which responses do not have. */
#define REQUEST(svc, op, row_flags, ext, x, speaks) \
	ROW(svc, op, REQ | (row_flags) | ((x) ? URXE_OPF_XRCETH : 0u), (ext) + (x), speaks)
#define SEND(svc, op, row_flags, ext, x, speaks) \
	REQUEST(svc, SEND_##op, URXE_OPF_SEND | PAY | (row_flags), ext, x, speaks)
#define WRITE(svc, op, row_flags, ext, x, speaks) \
	REQUEST(svc, WRITE_##op, URXE_OPF_WRITE | PAY | (row_flags), ext, x, speaks)

/* The operations that reliable and unreliable connections share. */
#define CONNECTED_ROWS(svc, x, speaks)                                                          \
	SEND(svc, FIRST, FIRST, 0, x, speaks), SEND(svc, MIDDLE, MIDDLE, 0, x, speaks),         \
		SEND(svc, LAST, LAST, 0, x, speaks),                                            \
		SEND(svc, LAST_IMM, LAST | URXE_OPF_IMM, IMM, x, speaks),                       \
		SEND(svc, ONLY, ONLY, 0, x, speaks),                                            \
		SEND(svc, ONLY_IMM, ONLY | URXE_OPF_IMM, IMM, x, speaks),                       \
		WRITE(svc, FIRST, FIRST | URXE_OPF_RETH, RETH, x, speaks),                      \
		WRITE(svc, MIDDLE, MIDDLE, 0, x, speaks), WRITE(svc, LAST, LAST, 0, x, speaks), \
		WRITE(svc, LAST_IMM, LAST | URXE_OPF_IMM, IMM, x, speaks),                      \
		WRITE(svc, ONLY, ONLY | URXE_OPF_RETH, RETH, x, speaks),                        \
		WRITE(svc, ONLY_IMM, ONLY | URXE_OPF_RETH | URXE_OPF_IMM, RETH + IMM, x, speaks)

/* The operations that only a reliable service has. */
#define RELIABLE_ROWS(svc, x, speaks)                                                            \
	REQUEST(svc, READ_REQUEST, URXE_OPF_READ | ONLY | URXE_OPF_RETH, RETH, x, speaks),       \
		ROW(svc, READ_RESPONSE_FIRST, RSP | URXE_OPF_READ | FIRST | URXE_OPF_AETH | PAY, \
		    AETH, speaks),                                                               \
		ROW(svc, READ_RESPONSE_MIDDLE, RSP | URXE_OPF_READ | MIDDLE | PAY, 0, speaks),   \
		ROW(svc, READ_RESPONSE_LAST, RSP | URXE_OPF_READ | LAST | URXE_OPF_AETH | PAY,   \
		    AETH, speaks),                                                               \
		ROW(svc, READ_RESPONSE_ONLY, RSP | URXE_OPF_READ | ONLY | URXE_OPF_AETH | PAY,   \
		    AETH, speaks),                                                               \
		ROW(svc, ACKNOWLEDGE, RSP | URXE_OPF_ACK | ONLY | URXE_OPF_AETH, AETH, speaks),  \
		ROW(svc, ATOMIC_ACKNOWLEDGE,                                                     \
		    RSP | URXE_OPF_ATOMIC | ONLY | URXE_OPF_AETH | URXE_OPF_ATOMIC_ACK_ETH,      \
		    AETH + ATMACK, speaks),                                                      \
		REQUEST(svc, COMPARE_SWAP, URXE_OPF_ATOMIC | ONLY | URXE_OPF_ATOMIC_ETH, ATOMIC, \
			x, speaks),                                                              \
		REQUEST(svc, FETCH_ADD, URXE_OPF_ATOMIC | ONLY | URXE_OPF_ATOMIC_ETH, ATOMIC, x, \
			speaks),                                                                 \
		SEND(svc, LAST_INV, LAST | URXE_OPF_IETH, IETH, x, speaks),                      \
		SEND(svc, ONLY_INV, ONLY | URXE_OPF_IETH, IETH, x, speaks),                      \
		REQUEST(svc, FLUSH, URXE_OPF_FLUSH | ONLY | URXE_OPF_FETH | URXE_OPF_RETH,       \
			FETH + RETH, x, speaks),                                                 \
		REQUEST(svc, ATOMIC_WRITE, URXE_OPF_ATOMIC_WRITE | ONLY | URXE_OPF_RETH | PAY,   \
			RETH, x, speaks)

const struct urxe_opcode_info urxe_opcodes[256] = {
	CONNECTED_ROWS(RC, 0, true),
	RELIABLE_ROWS(RC, 0, true),

	CONNECTED_ROWS(UC, 0, true),

	REQUEST(UD, SEND_ONLY, URXE_OPF_SEND | PAY | ONLY | URXE_OPF_DETH, DETH, 0, true),
	REQUEST(UD, SEND_ONLY_IMM, URXE_OPF_SEND | PAY | ONLY | URXE_OPF_DETH | URXE_OPF_IMM,
		DETH + IMM, 0, true),

	/* XRC is not supported; its packets have a drop counter of their own. */
	CONNECTED_ROWS(XRC, XRCETH, false),
	RELIABLE_ROWS(XRC, XRCETH, false),

	[URXE_SERVICE_CNP | URXE_OP_CNP] = {"CNP", PAY, BTH, true},
};
