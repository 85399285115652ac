/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Joins rebuilt objects with the engine's, which urxe_state_restore makes, and with the adapter.
 * For checkpoint_restore.c.
 */
#ifndef URXE_VERBS_CHECKPOINT_JOIN_H
#define URXE_VERBS_CHECKPOINT_JOIN_H

#include <rxe/state.h>

struct rebuilt;

struct joining {
	struct rebuilt *rebuilt;
	int error; /* of a callback that returns none */
};

/* The callbacks of urxe_state_restore; `joining` has to live as long. */
struct urxe_state_restore join_callbacks(struct joining *joining);

/*
 * The caller has restored the engine's objects, lets no thread run the engine yet, and holds the
 * lock of the adapter. Checks that the objects of both sides fit each other and the addresses of
 * the device, and adds them to the adapter. After an error the caller calls join_undo.
 */
int join_port(struct joining *joining);
/* With the lock. Also after a part of join_port. */
void join_undo(struct joining *joining);

#endif
