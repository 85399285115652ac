/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine's GID table in terms of the HCA's: entries correspond by address and RoCE version. */
#ifndef URXE_VERBS_HCA_HCA_GID_H
#define URXE_VERBS_HCA_HCA_GID_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/types.h>

struct hca;

struct hca_gid {
	struct urxe_gid gid;
	bool valid;
	bool v1;       /* RoCEv1; else RoCEv2 */
	int16_t index; /* in the HCA's table; -1: it has no such entry */
};

struct hca_gids {
	struct hca_gid entries[URXE_MAX_GIDS]; /* of the engine */
};

/* The HCA's index of the engine's entry; -1: none. */
int hca_gid_index(const struct hca *hca, uint32_t index);

#endif
