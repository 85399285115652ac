/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state of this process for `urxe show`, as session/state_document.h describes it. */
#ifndef URXE_VERBS_DAEMON_STATE_JSON_H
#define URXE_VERBS_DAEMON_STATE_JSON_H

/*
 * Sends the document to the other end of `socket` (struct vnic_attach_state), and closes `socket`.
 * The caller holds adapter.lock, which the function releases while it writes. Never waits for the
 * reader. For the engine thread.
 */
void state_json_send(int socket);

#endif
