/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collects the states of processes (verbs/report/state_json.h) into the daemon's report.
 * control_client.c calls this, in the client.
 */
#ifndef URXE_URXED_REPORT_PROCESS_STATES_H
#define URXE_URXED_REPORT_PROCESS_STATES_H

#include <jansson.h>

/*
 * Adds the states that processes send on the socket, as control_client.h says. Ends when all have
 * answered, or CONTROL_CLIENT_ANSWER_MS after the last packet. Processes are not trusted: their
 * packets may contain anything, and each process counts once.
 */
void process_states_collect(json_t *report, int socket);

#endif
