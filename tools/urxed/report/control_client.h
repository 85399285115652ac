/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe's end of the control socket. */
#ifndef URXE_URXED_REPORT_CONTROL_CLIENT_H
#define URXE_URXED_REPORT_CONTROL_CLIENT_H

#include <stdbool.h>

#include <jansson.h>

#define CONTROL_CLIENT_ERROR   256
#define CONTROL_CLIENT_SECONDS 5 /* a daemon that takes longer has hung, or was stopped */
#define CONTROL_CLIENT_ANSWER_MS \
	1000                        /* likewise a process that gives no sign of life for so long */
#define CONTROL_CLIENT_LONGEST_S 60 /* for which signs of life are waited for */

/*
 * Connects to the daemon of run_dir, and asks for a capture of a port by its name or
 * number, or of all where port is "". Returns the connection, which the capture lasts as
 * long as, and the ring's memory (capture_ring.h); or -1, with one sentence in `error`.
 */
int control_client_capture(const char *run_dir, const char *port, int *ring,
			   char error[CONTROL_CLIENT_ERROR]);

/*
 * What the daemon of run_dir tells (report.h); NULL on error, with one sentence in
 * `error`. With `processes` each of them adds what it has (verbs/report/state_json.h):
 *
 *   qps, mrs  as there, with process and pid
 *   counters  theirs, too, with pid; `of` is the process
 *   leases    answered, and of those that have: qps, how many have a number of the block, and
 *             mrs, how many the process has
 *
 * The caller's to json_decref.
 */
json_t *control_client_report(const char *run_dir, bool processes,
			      char error[CONTROL_CLIENT_ERROR]);

#endif
