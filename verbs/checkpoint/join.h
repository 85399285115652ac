/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Joins the objects of rebuild.h with the engine's objects, which urxe_state_restore makes, and
 * adds them to the adapter. For checkpoint_restore.c.
 */
#ifndef URXE_VERBS_CHECKPOINT_JOIN_H
#define URXE_VERBS_CHECKPOINT_JOIN_H

#include <rxe/state.h>

struct rebuilt;

struct joining {
	struct rebuilt *rebuilt;
	int error; /* set by a callback that cannot return an error; join_add_objects returns it */
};

/* The callbacks for urxe_state_restore; `joining` has to live until that function returns. */
struct urxe_state_restore join_callbacks(struct joining *joining);

/*
 * Checks that the rebuilt objects agree with the engine's, and that the device has the addresses
 * and P_Keys that they use. Then adds the rebuilt objects to the adapter. The caller has restored
 * the engine's objects, lets no thread run the engine yet, and holds adapter.lock. 0 or a negative
 * errno value; after an error the caller calls join_undo.
 */
int join_add_objects(struct joining *joining);
/* Removes from the adapter the contexts, regions, remote queue pairs (adapter/told_qp.h) and QPNs
 * outside the leases that join_add_objects has added, also after an error. With adapter.lock. */
void join_undo(struct joining *joining);

#endif
