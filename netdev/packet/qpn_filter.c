/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "packet/qpn_filter.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include <netdev/packet_port.h>

#define ETHERTYPE_ROCEV1 0x8915
#define ROCEV2_PORT      4791

/* Offsets in a frame. */
#define ETHERTYPE     12
#define IPV4          14
#define IPV4_FRAGMENT (IPV4 + 6)
#define IPV4_PROTOCOL (IPV4 + 9)
#define IPV6          14
#define IPV6_NEXT     (IPV6 + 6)
#define IPV6_UDP      (IPV6 + 40)
#define ROCEV1_BTH    (14 + 40) /* behind the GRH */

/* Offsets from the UDP header, and from the BTH to the upper 16 bits of the destination QPN. */
#define UDP_PORT 2
#define UDP_BTH  8
#define BTH_QPN  5

#define IPV4_IS_FRAGMENT 0x3fff /* more fragments follow, or the offset is not 0 */

#define LOAD(size, mode, offset) BPF_STMT(BPF_LD | (size) | (mode), offset)
#define IF(test, value, here, yes, no) \
	BPF_JUMP(BPF_JMP | (test) | BPF_K, value, (yes) - (here)-1, (no) - (here)-1)
#define GO(here, target) BPF_STMT(BPF_JMP | BPF_JA, (target) - (here)-1)

/* Positions of instructions to which others jump; jumps go forward only. */
enum { NEXT_IS_IPV6 = 2, NEXT_IS_ROCEV1, NEXT_IS_OTHER, OF_IPV4, OF_IPV6 = 14, OF_ROCEV1 = 20 };
enum { NOT_ROCE = 22, HAS_QPN, PROLOGUE };

/*
 * Loads the number of the destination QPN's block, and goes on at HAS_QPN. For a frame that is not
 * RoCE, or an IPv6 packet with extension headers, jumps to NOT_ROCE. There an unconditional jump,
 * set by qpn_filter_write, skips the comparisons: a conditional jump reaches only 255 instructions.
 */
static const struct sock_filter prologue[PROLOGUE] = {
	/*  0 */ LOAD(BPF_H, BPF_ABS, ETHERTYPE),
	/*  1 */ IF(BPF_JEQ, ETH_P_IP, 1, OF_IPV4, NEXT_IS_IPV6),
	/*  2 */ IF(BPF_JEQ, ETH_P_IPV6, 2, OF_IPV6, NEXT_IS_ROCEV1),
	/*  3 */ IF(BPF_JEQ, ETHERTYPE_ROCEV1, 3, OF_ROCEV1, NEXT_IS_OTHER),
	/*  4 */ GO(4, NOT_ROCE),
	/*  5 */ LOAD(BPF_B, BPF_ABS, IPV4_PROTOCOL),
	/*  6 */ IF(BPF_JEQ, IPPROTO_UDP, 6, 7, NOT_ROCE),
	/*  7 */ LOAD(BPF_H, BPF_ABS, IPV4_FRAGMENT),
	/*  8 */ IF(BPF_JSET, IPV4_IS_FRAGMENT, 8, NOT_ROCE, 9),
	/*  9 */ BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, IPV4),
	/* 10 */ LOAD(BPF_H, BPF_IND, IPV4 + UDP_PORT),
	/* 11 */ IF(BPF_JEQ, ROCEV2_PORT, 11, 12, NOT_ROCE),
	/* 12 */ LOAD(BPF_H, BPF_IND, IPV4 + UDP_BTH + BTH_QPN),
	/* 13 */ GO(13, HAS_QPN),
	/* 14 */ LOAD(BPF_B, BPF_ABS, IPV6_NEXT),
	/* 15 */ IF(BPF_JEQ, IPPROTO_UDP, 15, 16, NOT_ROCE),
	/* 16 */ LOAD(BPF_H, BPF_ABS, IPV6_UDP + UDP_PORT),
	/* 17 */ IF(BPF_JEQ, ROCEV2_PORT, 17, 18, NOT_ROCE),
	/* 18 */ LOAD(BPF_H, BPF_ABS, IPV6_UDP + UDP_BTH + BTH_QPN),
	/* 19 */ GO(19, HAS_QPN),
	/* 20 */ LOAD(BPF_H, BPF_ABS, ROCEV1_BTH + BTH_QPN),
	/* 21 */ GO(21, HAS_QPN),
	/* 22 */ GO(22, 23),
	/* 23 */ BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16 - (24 - PACKET_PORT_QPN_SHIFT)),
};

uint32_t qpn_filter_write(struct sock_filter *to, uint32_t room, const uint16_t *blocks, uint32_t n,
			  uint32_t verdict)
{
	const struct sock_filter give_verdict = BPF_STMT(BPF_RET | BPF_K, verdict);
	const uint32_t length = PROLOGUE + 2 * n;

	if (length > room)
		return 0;
	memcpy(to, prologue, sizeof(prologue));
	to[NOT_ROCE] = (struct sock_filter)GO(NOT_ROCE, length);
	to += PROLOGUE;
	for (uint32_t i = 0; i < n; i++, to += 2) {
		to[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, blocks[i], 0, 1);
		to[1] = give_verdict;
	}
	return length;
}
