/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attaches the process to its daemon, and detaches it. Without adapter.lock. */
#ifndef URXE_VERBS_ATTACH_ATTACH_H
#define URXE_VERBS_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxe/state.h>
#include <vnic/attach.h>

/* The first call attaches the process to its daemon; each call needs an adapter_close. */
int adapter_open(void);
void adapter_close(void);
/*
 * Counts one more user if the adapter is open; each needs an adapter_close. False: the adapter is
 * not open.
 */
bool adapter_ref(void);

/* What a process had when it was saved (checkpoint/). */
struct adapter_saved {
	const uint32_t *blocks; /* first QPNs of its blocks, in their order */
	uint32_t n_blocks;      /* 1 to VNIC_LEASES_MAX */
	/* Of the adapter: */
	struct vnic_attach_gid gids[VNIC_ATTACH_GIDS];
	bool up;
	const uint8_t *engine; /* stream of urxe_state_save */
	size_t engine_length;
	const struct urxe_state_restore *how;
};

/*
 * Attaches a process that has no open device to its daemon, with the blocks of QPNs and the engine
 * of a saved process; no thread runs the engine yet. After success one of the other two functions
 * follows, in the same thread. adapter.lock must not be held. -EBUSY: the process has an open
 * device; errors of vnic_driver_demand and urxe_state_restore.
 */
int adapter_restore_begin(const struct adapter_saved *saved);
void adapter_restore_abort(void);
/*
 * The adapter has the contexts and their objects: starts the engine. `users` is the number of
 * contexts. After an error the adapter is detached.
 */
int adapter_restore_end(const struct adapter_saved *saved, uint32_t users);

#endif
