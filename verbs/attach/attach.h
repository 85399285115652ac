/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attaches the process to its daemon, and detaches it. Callers must not hold adapter.lock. */
#ifndef URXE_VERBS_ATTACH_ATTACH_H
#define URXE_VERBS_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxe/state.h>
#include <vnic/attach_protocol.h>

/*
 * Counts one more user of the adapter, and sets *generation to adapter_fork_generation; the first
 * user attaches the process to its daemon. The last user's adapter_unref detaches the process. Each
 * success needs one adapter_unref. May wait for another daemon, for URXE_RECONNECT_S at most. 0 or
 * a negative errno value; -ENODEV: URXE_DIR names no run directory; -EIO: a signal handler has
 * forked during the call, and this is the child.
 */
int adapter_open(uint32_t *generation);
/* As adapter_open, if the adapter has users already. False: it has none. */
bool adapter_ref(uint32_t *generation);
/* Ends a use that adapter_open or adapter_ref began; `generation` is the value that they set. Has
 * no effect in a child that was forked since then: the use is the parent's. */
void adapter_unref(uint32_t generation);

/* What a process had when it was saved (checkpoint/). */
struct adapter_saved {
	const uint32_t *blocks; /* first QPN of each leased block, in the order of the leases */
	uint32_t n_blocks;      /* 1 to VNIC_LEASES_MAX */
	/* Of the port: its GID table, and whether it was active. */
	struct vnic_attach_gid gids[VNIC_ATTACH_GIDS];
	bool up;
	const uint8_t *engine; /* stream of urxe_state_save */
	size_t engine_length;
	const struct urxe_state_restore *how; /* callbacks for the objects of the stream */
	/* adapter_restore_begin sets these: */
	uint32_t demanded;        /* the last block that it asked for */
	uint32_t fork_generation; /* adapter_fork_generation */
};

/*
 * Attaches a process that has no open device to its daemon, with the blocks of QPNs and the engine
 * of a saved process; no thread runs the engine yet. After success the thread holds
 * adapter_open_lock, until it calls adapter_restore_abort, which detaches the process, or
 * adapter_restore_end. 0; -EBUSY: the process has an open device; -EIO: a signal handler has forked
 * during the call, and this is the child; errors of vnic_driver_demand and urxe_state_restore; or
 * another negative errno value.
 */
int adapter_restore_begin(struct adapter_saved *saved);
void adapter_restore_abort(const struct adapter_saved *saved);
/*
 * Call it when the adapter has the contexts and their objects: starts the engine thread. `users` is
 * the number of contexts. 0 or a negative errno value; after an error the adapter is detached. -EIO
 * in a child that a signal handler has forked since adapter_restore_begin: it has no adapter.
 */
int adapter_restore_end(const struct adapter_saved *saved, uint32_t users);

#endif
