/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asks all processes for their QPs and MRs, on behalf of `urxe show`. monitor.c calls this. */
#ifndef URXE_URXED_REPORT_STATE_QUERY_H
#define URXE_URXED_REPORT_STATE_QUERY_H

#include "urxed/report/control.h"
#include "urxed/session/session.h"

/*
 * Sends every process the request, to be answered on its user's socket, and sets `asked` of those
 * that got it. The caller closes the sockets.
 */
void state_query_send(struct sessions *sessions, struct control_sockets *sockets);

#endif
