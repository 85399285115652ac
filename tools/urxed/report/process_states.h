/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What processes answer to the question what they have, put into the daemon's report. */
#ifndef URXE_URXED_REPORT_PROCESS_STATES_H
#define URXE_URXED_REPORT_PROCESS_STATES_H

#include <jansson.h>

/*
 * Adds to the report what ask.h says, as answers come on the socket, for
 * CONTROL_CLIENT_ANSWER_MS after the last sign of life. Processes are strangers: what they send may
 * be anything, and each counts once.
 */
void process_states_collect(json_t *report, int socket);

#endif
