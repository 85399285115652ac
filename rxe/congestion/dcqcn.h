/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* DCQCN's reaction point: the rate of one QP (Zhu et al., SIGCOMM 2015, section 3.1). */
#ifndef URXE_DCQCN_H
#define URXE_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/cong.h>

/* alpha is a fraction of this. */
#define DCQCN_ALPHA_SHIFT 20
#define DCQCN_ALPHA_ONE   (1u << DCQCN_ALPHA_SHIFT)

struct dcqcn {
	uint64_t current_bps; /* R_C; 0: at the link's rate, nothing to limit */
	uint64_t target_bps;  /* R_T */
	uint64_t alpha_at;    /* alpha decays next */
	uint64_t increase_at; /* T counts next */
	uint32_t alpha;       /* estimate of the congestion, in 1 / DCQCN_ALPHA_ONE */
	uint32_t bytes;       /* sent since BC counted last */
	uint32_t by_time;     /* T: increases by time since the last CNP */
	uint32_t by_size;     /* BC: increases by bytes sent since then */
};

bool dcqcn_valid(const struct urxe_dcqcn *params, uint64_t link_bps);

#endif
