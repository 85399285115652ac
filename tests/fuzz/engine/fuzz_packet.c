/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Any bytes as a frame. The parser must stay inside the frame, and its results must be consistent.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "craft.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct urxe_packet *p, const uint8_t *frame, uint32_t len)
{
	require(urxe_opcodes[p->opcode].known);
	require(p->l3 > frame && p->bth > p->l3 && p->payload > p->bth);
	require(p->payload == p->bth + urxe_opcodes[p->opcode].hdr_len);
	require(p->payload + p->payload_len + p->pad == p->icrc);
	require(p->icrc + URXE_ICRC_LEN <= frame + len);
	require(p->net <= URXE_NET_IPV6 && p->dest_qpn <= 0xffffff && p->psn <= 0xffffff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct urxe_packet p;
	uint8_t *frame;
	uint32_t len = (uint32_t)size;

	if (size > CRAFT_MAX)
		return 0;
	frame = malloc(size ? size : 1);
	require(frame);
	if (size)
		memcpy(frame, data, size);
	if (urxe_packet_parse(&p, frame, len) == URXE_DROP_NONE) {
		check(&p, frame, len);
		/* The ICRC of a second implementation must be right, and wrong after a flip of one
		 * bit. */
		if (!p.has_vlan && craft_seal(frame, len)) {
			require(urxe_packet_icrc_ok(&p));
			frame[p.icrc - frame] ^= 1;
			require(!urxe_packet_icrc_ok(&p));
		}
	}
	free(frame);
	return 0;
}
