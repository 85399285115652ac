/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Congestion control of RoCEv2: how a sender reacts to congestion notification
 * packets (IBA Annex A17.9; the marks are those of RFC 3168).
 */
#ifndef URXE_RXE_CONG_H
#define URXE_RXE_CONG_H

#include <stdint.h>

enum urxe_congestion {
	/* Packets are sent ECN-capable, marked ones are answered with CNPs, and CNPs slow a QP
	 * down. */
	URXE_CONGESTION_DCQCN,
	/* Packets are sent as not ECN-capable; marks and CNPs are counted and nothing else. */
	URXE_CONGESTION_NONE,
	URXE_CONGESTION_COUNT
};

/*
 * Parameters of DCQCN's reaction point, by their names in "Congestion Control for
 * Large-Scale RDMA Deployments" (Zhu et al., SIGCOMM 2015), whose values are the
 * defaults. It leaves R_HAI open; ten times R_AI is what NICs come with.
 */
struct urxe_dcqcn {
	uint8_t g_shift;        /* g = 2^-g_shift, the weight of an update of alpha; 1 to 16 */
	uint8_t f;              /* F: increases by either counter that are fast recovery */
	uint32_t alpha_ns;      /* K: alpha decays once in so long without a CNP; 1,000 or more */
	uint32_t increase_ns;   /* T's period: the rate rises once in so long; 1,000 or more */
	uint32_t increase_size; /* BC's period: and once in so many bytes sent; 1 or more */
	uint32_t ai_bps;        /* R_AI: a step of additive increase, bits/s; 1,000,000 or more */
	uint32_t hai_bps;       /* R_HAI: a step of hyper increase, bits/s; ai_bps or more */
	uint64_t min_bps;       /* no rate is less, bits/s; 1 to the link's */
};

extern const struct urxe_dcqcn urxe_dcqcn_default;

#endif
