/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Maps the engine's P_Key table to the HCA's: entries correspond if their P_Keys are equal. */
#ifndef URXE_VERBS_HCA_HCA_PKEY_H
#define URXE_VERBS_HCA_HCA_PKEY_H

#include <stdint.h>

#include <rxe/types.h>

struct hca;

struct hca_pkeys {
	uint16_t entries[URXE_MAX_PKEYS]; /* the engine's table; 0: no P_Key */
	int16_t index[URXE_MAX_PKEYS];    /* in the HCA's table; -1: it has no such P_Key */
};

/* The index in the HCA's P_Key table of entry `index` of the engine's; -1: that entry is empty, or
 * the HCA lacks its P_Key. */
int hca_pkey_index(const struct hca *hca, uint32_t index);

#endif
