/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Maps the engine's GID table to the HCA's: entries correspond if GID and RoCE version are
 * equal, and the interface if both are known. */
#ifndef URXE_VERBS_HCA_HCA_GID_H
#define URXE_VERBS_HCA_HCA_GID_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/types.h>

struct hca;

struct hca_gid {
	struct urxe_gid gid;
	bool valid;
	bool v1;          /* RoCEv1; else RoCEv2 */
	int16_t index;    /* in the HCA's table; -1: no such entry was found */
	uint32_t ifindex; /* 0: of any interface */
};

struct hca_gids {
	struct hca_gid entries[URXE_MAX_GIDS]; /* by index in the engine's table */
	bool unread;                           /* the HCA's table could not be read last time */
};

/* The index in the HCA's GID table of entry `index` of the engine's; -1: that entry is empty, or
 * the last hca_read_gids() has not found it. */
int hca_gid_index(const struct hca *hca, uint32_t index);

#endif
