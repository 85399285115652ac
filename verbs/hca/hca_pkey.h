/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine's P_Key table in terms of the HCA's: entries correspond by P_Key. */
#ifndef URXE_VERBS_HCA_HCA_PKEY_H
#define URXE_VERBS_HCA_HCA_PKEY_H

#include <stdint.h>

#include <rxe/types.h>

struct hca;

struct hca_pkeys {
	uint16_t entries[URXE_MAX_PKEYS]; /* of the engine; 0: none */
	int16_t index[URXE_MAX_PKEYS];    /* in the HCA's table; -1: it has no such P_Key */
};

/* The HCA's index of the engine's entry; -1: none. */
int hca_pkey_index(const struct hca *hca, uint32_t index);

#endif
