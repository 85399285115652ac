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

#define REQ    (URXE_OPF_REQUEST | URXE_OPF_PAYLOAD)
#define RSP    URXE_OPF_RESPONSE
#define FIRST  URXE_OPF_START
#define MIDDLE 0u
#define LAST   URXE_OPF_END
#define ONLY   (URXE_OPF_START | URXE_OPF_END)

/* One row: service, operation, flags, extended headers' length, whether the engine speaks it. */
#define ROW(svc, op, row_flags, ext, speaks) \
	[URXE_SERVICE_##svc | URXE_OP_##op] = {#svc "_" #op, (row_flags), BTH + (ext), (speaks)}

/* The operations that reliable and unreliable connections share. */
#define CONNECTED_ROWS(svc, speaks)                                                                \
	ROW(svc, SEND_FIRST, REQ | URXE_OPF_SEND | FIRST, 0, speaks),                              \
		ROW(svc, SEND_MIDDLE, REQ | URXE_OPF_SEND | MIDDLE, 0, speaks),                    \
		ROW(svc, SEND_LAST, REQ | URXE_OPF_SEND | LAST, 0, speaks),                        \
		ROW(svc, SEND_LAST_IMM, REQ | URXE_OPF_SEND | LAST | URXE_OPF_IMM, IMM, speaks),   \
		ROW(svc, SEND_ONLY, REQ | URXE_OPF_SEND | ONLY, 0, speaks),                        \
		ROW(svc, SEND_ONLY_IMM, REQ | URXE_OPF_SEND | ONLY | URXE_OPF_IMM, IMM, speaks),   \
		ROW(svc, WRITE_FIRST, REQ | URXE_OPF_WRITE | FIRST | URXE_OPF_RETH, RETH, speaks), \
		ROW(svc, WRITE_MIDDLE, REQ | URXE_OPF_WRITE | MIDDLE, 0, speaks),                  \
		ROW(svc, WRITE_LAST, REQ | URXE_OPF_WRITE | LAST, 0, speaks),                      \
		ROW(svc, WRITE_LAST_IMM, REQ | URXE_OPF_WRITE | LAST | URXE_OPF_IMM, IMM, speaks), \
		ROW(svc, WRITE_ONLY, REQ | URXE_OPF_WRITE | ONLY | URXE_OPF_RETH, RETH, speaks),   \
		ROW(svc, WRITE_ONLY_IMM,                                                           \
		    REQ | URXE_OPF_WRITE | ONLY | URXE_OPF_RETH | URXE_OPF_IMM, RETH + IMM,        \
		    speaks)

/* The operations that only a reliable service has. */
#define RELIABLE_ROWS(svc, speaks)                                                                 \
	ROW(svc, READ_REQUEST, URXE_OPF_REQUEST | URXE_OPF_READ | ONLY | URXE_OPF_RETH, RETH,      \
	    speaks),                                                                               \
		ROW(svc, READ_RESPONSE_FIRST,                                                      \
		    RSP | URXE_OPF_READ | FIRST | URXE_OPF_AETH | URXE_OPF_PAYLOAD, AETH, speaks), \
		ROW(svc, READ_RESPONSE_MIDDLE, RSP | URXE_OPF_READ | MIDDLE | URXE_OPF_PAYLOAD, 0, \
		    speaks),                                                                       \
		ROW(svc, READ_RESPONSE_LAST,                                                       \
		    RSP | URXE_OPF_READ | LAST | URXE_OPF_AETH | URXE_OPF_PAYLOAD, AETH, speaks),  \
		ROW(svc, READ_RESPONSE_ONLY,                                                       \
		    RSP | URXE_OPF_READ | ONLY | URXE_OPF_AETH | URXE_OPF_PAYLOAD, AETH, speaks),  \
		ROW(svc, ACKNOWLEDGE, RSP | URXE_OPF_ACK | ONLY | URXE_OPF_AETH, AETH, speaks),    \
		ROW(svc, ATOMIC_ACKNOWLEDGE,                                                       \
		    RSP | URXE_OPF_ATOMIC | ONLY | URXE_OPF_AETH | URXE_OPF_ATOMIC_ACK_ETH,        \
		    AETH + ATMACK, speaks),                                                        \
		ROW(svc, COMPARE_SWAP,                                                             \
		    URXE_OPF_REQUEST | URXE_OPF_ATOMIC | ONLY | URXE_OPF_ATOMIC_ETH, ATOMIC,       \
		    speaks),                                                                       \
		ROW(svc, FETCH_ADD,                                                                \
		    URXE_OPF_REQUEST | URXE_OPF_ATOMIC | ONLY | URXE_OPF_ATOMIC_ETH, ATOMIC,       \
		    speaks),                                                                       \
		ROW(svc, SEND_LAST_INV, REQ | URXE_OPF_SEND | LAST | URXE_OPF_IETH, IETH, speaks), \
		ROW(svc, SEND_ONLY_INV, REQ | URXE_OPF_SEND | ONLY | URXE_OPF_IETH, IETH, speaks)

const struct urxe_opcode_info urxe_opcodes[256] = {
	CONNECTED_ROWS(RC, true),
	RELIABLE_ROWS(RC, true),

	CONNECTED_ROWS(UC, true),

	ROW(UD, SEND_ONLY, REQ | URXE_OPF_SEND | ONLY | URXE_OPF_DETH, DETH, true),
	ROW(UD, SEND_ONLY_IMM, REQ | URXE_OPF_SEND | ONLY | URXE_OPF_DETH | URXE_OPF_IMM,
	    DETH + IMM, true),

	[URXE_SERVICE_CNP | URXE_OP_CNP] = {"CNP", URXE_OPF_PAYLOAD, BTH, true},
};
