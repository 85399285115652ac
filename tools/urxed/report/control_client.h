/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The client's end of the control socket (control.h). urxe's commands show, capture and doctor call
 * this, and so does urxed's thread for DPDK's telemetry. */
#ifndef URXE_URXED_REPORT_CONTROL_CLIENT_H
#define URXE_URXED_REPORT_CONTROL_CLIENT_H

#include <stdint.h>

#include <jansson.h>

#include "urxed/report/control.h"

#define CONTROL_CLIENT_ERROR 256
/* Timeout for the daemon's reply: a daemon that takes longer hangs or was stopped. */
#define CONTROL_CLIENT_SECONDS 5
/* Time that processes have to begin their answers, if the user sets no other one. */
#define CONTROL_CLIENT_WAIT_MS 100
/* If a process that has begun its answer sends nothing for this time, its answer is left out. */
#define CONTROL_CLIENT_PROGRESS_MS 1000
/* Longest wait for the states of all processes. */
#define CONTROL_CLIENT_LONGEST_S 60

/*
 * Asks the daemon of run_dir for a capture of a port by its name or number, or of all ports if port
 * is "". Returns the connection, and the memory of the capture ring (capture_ring.h) in *ring. The
 * capture ends when the connection is closed. `record`: processes record their engines, see
 * control_client_next. Returns -1 on error, with one sentence in `error`.
 */
int control_client_capture(const char *run_dir, const char *port, bool record, int *ring,
			   char error[CONTROL_CLIENT_ERROR]);
/*
 * Takes the next packet of a connection of control_client_capture, without waiting. Returns true
 * for a packet: with a recording (vnic/record_ring.h) *ring is its descriptor, which the caller
 * closes, and `port` the name of the process's port; without one *ring is -1, and the capture ring
 * has new frames. Returns false if there is no packet, or if the daemon has ended, which sets
 * *ended.
 */
bool control_client_next(int fd, int *ring, char port[CONTROL_PORT], bool *ended);

/*
 * Returns the report of the daemon of run_dir (report.h); the caller calls json_decref. NULL on
 * error, with one sentence in `error`. With wait_ms > 0, the report also contains the state of each
 * process that begins its answer within that time (verbs/session/state_document.h):
 *
 *   qps, mrs  rows as in state_document.h, each with the process' name and pid; of qps also
 *             `port`, the number of the process's port
 *   counters  rows of each process, with pid; `of` is the process' name
 *   leases    `answered`: the report has the state of the process. Then `qps` is the number of its
 * QPs in that block of QPNs, and `mrs` the number of its MRs. `refused`: in the first lease of a
 * process whose answer was not accepted, the reason.
 *
 * Uses SIGALRM (close_alarm.h). With wait_ms > 0, raises the soft limit of descriptors to the hard
 * one.
 */
json_t *control_client_report(const char *run_dir, uint32_t wait_ms,
			      char error[CONTROL_CLIENT_ERROR]);

#endif
