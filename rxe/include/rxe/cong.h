/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Congestion control of RoCEv2: how a sender reacts to congestion notification packets (CNP, IBA
 * Annex A17.9) that answer marked packets (CE, RFC 3168).
 */
#ifndef URXE_RXE_CONG_H
#define URXE_RXE_CONG_H

#include <stdint.h>

enum urxe_congestion {
	/* Packets are ECN-capable, the receiver answers marked ones with CNPs, and CNPs slow a QP
	 * down. */
	URXE_CONGESTION_DCQCN,
	/* Packets are not ECN-capable; marks and CNPs are only counted. */
	URXE_CONGESTION_NONE,
	URXE_CONGESTION_COUNT
};

/*
 * Parameters of DCQCN's reaction point, with names and default values of "Congestion Control for
 * Large-Scale RDMA Deployments" (Zhu et al., SIGCOMM 2015). The paper leaves R_HAI and the smallest
 * rate open; NICs use ten times R_AI. On slow links intervals are longer and steps smaller
 * (docs/congestion.md).
 */
struct urxe_dcqcn {
	uint8_t g_shift;      /* g = 2^-g_shift, the weight of an update of alpha; 1 to 16 */
	uint8_t f;            /* F: number of increases by T or BC that are fast recovery */
	uint32_t alpha_ns;    /* K: interval of decays of alpha without a CNP, ns; 1,000 or more */
	uint32_t increase_ns; /* T's period: interval of increases, ns; 1,000 or more */
	uint32_t increase_size; /* BC's period: bytes sent per increase; 1 or more */
	uint32_t ai_bps;        /* R_AI: a step of additive increase, bits/s; 1,000,000 or more */
	uint32_t hai_bps;       /* R_HAI: a step of hyper increase, bits/s; ai_bps or more */
	uint64_t min_bps;       /* smallest rate, bits/s; 1 to the link's */
};

extern const struct urxe_dcqcn urxe_dcqcn_default;

#endif
