/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* DCQCN's reaction point: the rate of one QP (Zhu et al., SIGCOMM 2015, section 3.1). */
#ifndef URXE_DCQCN_H
#define URXE_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/cong.h>

#include "congestion/congestion.h"

/* alpha is a fraction of this. */
#define DCQCN_ALPHA_SHIFT 20
#define DCQCN_ALPHA_ONE   (1u << DCQCN_ALPHA_SHIFT)

extern const struct cong_ops cong_dcqcn;

bool dcqcn_valid(const struct urxe_dcqcn *params, uint64_t link_bps);

#endif
