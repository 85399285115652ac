/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asks all attached processes for their QPs and MRs, on behalf of `urxe show`. monitor.c calls
 * this.
 */
#ifndef URXE_URXED_REPORT_STATE_QUERY_H
#define URXE_URXED_REPORT_STATE_QUERY_H

#include "urxed/session/session.h"

/*
 * Makes a pair of sockets for each attached process. Sends one end to `client`, the connection of
 * urxe show (struct control_processes), and the other end with the request to the process, which
 * answers there. Sets `asked` (struct session) if the process was sent the request, and clears it
 * in all other sessions.
 */
void state_query_send(struct sessions *sessions, int client);

#endif
