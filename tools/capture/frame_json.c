/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/frame_json.h"

#include <stdbool.h>
#include <stdio.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "capture/frame_text.h"

static json_t *number_or_null(bool known, uint32_t number)
{
	return known ? json_integer(number) : json_null();
}

static json_t *describe_packet(const struct urxe_packet *p)
{
	const struct urxe_opcode_info *info = &urxe_opcodes[p->opcode];
	char number[sizeof("0xff")];

	snprintf(number, sizeof(number), "0x%02x", p->opcode);
	return json_pack("{s:s, s:I, s:I, s:o, s:o}", "opcode", info->name ? info->name : number,
			 "dest_qpn", (json_int_t)p->dest_qpn, "psn", (json_int_t)p->psn,
			 "source_qpn", number_or_null(info->flags & URXE_OPF_DETH, p->deth.src_qpn),
			 "syndrome", number_or_null(info->flags & URXE_OPF_AETH, p->aeth.syndrome));
}

json_t *frame_json(const uint8_t *frame, uint32_t len)
{
	char source[FRAME_TEXT], destination[FRAME_TEXT], words[FRAME_TEXT];
	struct urxe_packet p;
	enum urxe_drop drop = frame_parse(&p, frame, len);
	bool whole = !drop || drop == URXE_DROP_BAD_ICRC;
	const char *error = drop && drop != URXE_DROP_NOT_ROCE ? urxe_drop_name(drop) : NULL;

	frame_ends(source, destination, frame, len);
	frame_words(words, frame, len);
	return json_pack("{s:s, s:s, s:I, s:s, s:o, s:s?}", "source", source, "destination",
			 destination, "bytes", (json_int_t)len, "text", words, "roce",
			 whole ? describe_packet(&p) : json_null(), "error", error);
}
