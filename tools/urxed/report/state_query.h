/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asks all attached processes for their QPs and MRs, on behalf of `urxe show`. monitor.c calls
 * this.
 */
#ifndef URXE_URXED_REPORT_STATE_QUERY_H
#define URXE_URXED_REPORT_STATE_QUERY_H

#include "urxed/session/session.h"

/*
 * Sends every attached process the request, with a socket of its own for the answer, and sets
 * `asked` of those that got it. `client`: the connection of urxe show, which gets the other ends of
 * the sockets (struct control_processes).
 */
void state_query_send(struct sessions *sessions, int client);

#endif
