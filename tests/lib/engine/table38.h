/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * IBA volume 1, table 38 "OpCode field", transcribed independently of the engine's table on
 * purpose.
 */
#ifndef URXE_TEST_TABLE38_H
#define URXE_TEST_TABLE38_H

#include <stdbool.h>
#include <stdint.h>

/* "Packet contents following the BTH", in wire order. */
enum table38_header {
	T38_DETH = 1,
	T38_RETH = 2,
	T38_ATOMICETH = 4,
	T38_AETH = 8,
	T38_ATOMICACKETH = 16,
	T38_IMMDT = 32,
	T38_IETH = 64,
	T38_PAYLOAD = 128,
	T38_FETH = 256,   /* Annex A19; before the RETH */
	T38_XRCETH = 512, /* first of all */
};

struct table38_row {
	uint8_t opcode;
	const char *name;
	uint16_t contents; /* enum table38_header */
	bool spoken;       /* by this engine */
};

extern const struct table38_row table38[];
extern const unsigned table38_rows;

/* NULL for an opcode without a name in the engine. */
const struct table38_row *table38_find(uint8_t opcode);
/* Length of the BTH and the headers between it and the payload (IBA 9.2 to 9.3.6). */
uint32_t table38_header_len(uint16_t contents);

#endif
