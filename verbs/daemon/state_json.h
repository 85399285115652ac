/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state of this process for `urxe show`, as state/state_document.h describes it. */
#ifndef URXE_VERBS_DAEMON_STATE_JSON_H
#define URXE_VERBS_DAEMON_STATE_JSON_H

/*
 * Sends the document to the other end of `socket` (struct vnic_attach_state), and closes `socket`.
 * With the lock of the adapter, which is free during the writing. Never blocks. For the engine
 * thread.
 */
void state_json_send(int socket);

#endif
