/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "table38.h"

#include <stddef.h>

#define R(op, name, contents)            \
	{                                \
		op, name, contents, true \
	}

const struct table38_row table38[] = {
	R(0x00, "RC_SEND_FIRST", T38_PAYLOAD),
	R(0x01, "RC_SEND_MIDDLE", T38_PAYLOAD),
	R(0x02, "RC_SEND_LAST", T38_PAYLOAD),
	R(0x03, "RC_SEND_LAST_IMM", T38_IMMDT | T38_PAYLOAD),
	R(0x04, "RC_SEND_ONLY", T38_PAYLOAD),
	R(0x05, "RC_SEND_ONLY_IMM", T38_IMMDT | T38_PAYLOAD),
	R(0x06, "RC_WRITE_FIRST", T38_RETH | T38_PAYLOAD),
	R(0x07, "RC_WRITE_MIDDLE", T38_PAYLOAD),
	R(0x08, "RC_WRITE_LAST", T38_PAYLOAD),
	R(0x09, "RC_WRITE_LAST_IMM", T38_IMMDT | T38_PAYLOAD),
	R(0x0a, "RC_WRITE_ONLY", T38_RETH | T38_PAYLOAD),
	R(0x0b, "RC_WRITE_ONLY_IMM", T38_RETH | T38_IMMDT | T38_PAYLOAD),
	R(0x0c, "RC_READ_REQUEST", T38_RETH),
	R(0x0d, "RC_READ_RESPONSE_FIRST", T38_AETH | T38_PAYLOAD),
	R(0x0e, "RC_READ_RESPONSE_MIDDLE", T38_PAYLOAD),
	R(0x0f, "RC_READ_RESPONSE_LAST", T38_AETH | T38_PAYLOAD),
	R(0x10, "RC_READ_RESPONSE_ONLY", T38_AETH | T38_PAYLOAD),
	R(0x11, "RC_ACKNOWLEDGE", T38_AETH),
	R(0x12, "RC_ATOMIC_ACKNOWLEDGE", T38_AETH | T38_ATOMICACKETH),
	R(0x13, "RC_COMPARE_SWAP", T38_ATOMICETH),
	R(0x14, "RC_FETCH_ADD", T38_ATOMICETH),
	R(0x16, "RC_SEND_LAST_INV", T38_IETH | T38_PAYLOAD),
	R(0x17, "RC_SEND_ONLY_INV", T38_IETH | T38_PAYLOAD),

	R(0x20, "UC_SEND_FIRST", T38_PAYLOAD),
	R(0x21, "UC_SEND_MIDDLE", T38_PAYLOAD),
	R(0x22, "UC_SEND_LAST", T38_PAYLOAD),
	R(0x23, "UC_SEND_LAST_IMM", T38_IMMDT | T38_PAYLOAD),
	R(0x24, "UC_SEND_ONLY", T38_PAYLOAD),
	R(0x25, "UC_SEND_ONLY_IMM", T38_IMMDT | T38_PAYLOAD),
	R(0x26, "UC_WRITE_FIRST", T38_RETH | T38_PAYLOAD),
	R(0x27, "UC_WRITE_MIDDLE", T38_PAYLOAD),
	R(0x28, "UC_WRITE_LAST", T38_PAYLOAD),
	R(0x29, "UC_WRITE_LAST_IMM", T38_IMMDT | T38_PAYLOAD),
	R(0x2a, "UC_WRITE_ONLY", T38_RETH | T38_PAYLOAD),
	R(0x2b, "UC_WRITE_ONLY_IMM", T38_RETH | T38_IMMDT | T38_PAYLOAD),

	R(0x64, "UD_SEND_ONLY", T38_DETH | T38_PAYLOAD),
	R(0x65, "UD_SEND_ONLY_IMM", T38_DETH | T38_IMMDT | T38_PAYLOAD),

	/* Annex A17.9.3: 16 reserved bytes follow the BTH. */
	R(0x81, "CNP", T38_PAYLOAD),
};

const unsigned table38_rows = sizeof(table38) / sizeof(table38[0]);

const struct table38_row *table38_find(uint8_t opcode)
{
	for (unsigned i = 0; i < table38_rows; i++)
		if (table38[i].opcode == opcode)
			return &table38[i];
	return NULL;
}

uint32_t table38_header_len(uint8_t contents)
{
	uint32_t len = 12;

	len += contents & T38_DETH ? 8 : 0;
	len += contents & T38_RETH ? 16 : 0;
	len += contents & T38_ATOMICETH ? 28 : 0;
	len += contents & T38_AETH ? 4 : 0;
	len += contents & T38_ATOMICACKETH ? 8 : 0;
	len += contents & T38_IMMDT ? 4 : 0;
	len += contents & T38_IETH ? 4 : 0;
	return len;
}
