/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What people see of a running daemon: the report, captures, and the counters in its log. */
#ifndef URXE_URXED_REPORT_CONTROL_OPS_H
#define URXE_URXED_REPORT_CONTROL_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/cm/rdmacm.h"
#include "urxed/report/control.h"
#include "urxed/session/session.h"
#include "urxed/switch/capture_tap.h"
#include "urxed/uplink/uplink_set.h"

#define INSPECT_WHY 256

struct inspect {
	const char *run_dir;
	bool private;
	struct clients *clients;
	const struct uplinks *uplinks;
	const struct rdmacm *rdmacm;
	uint64_t started; /* as now_ns */
	struct control control;
	struct captures captures;
};

/* Nobody looks in yet, and it can be closed. What is pointed to stays where it is. */
void inspect_init(struct inspect *in, const char *run_dir, bool private, struct clients *clients,
		  const struct uplinks *uplinks, const struct rdmacm *rdmacm);
/*
 * Takes questions on the control socket, which is watched in the clients' epoll set with
 * `in` as data, and from DPDK's telemetry. On error `why` has one sentence.
 */
int inspect_open(struct inspect *in, char why[INSPECT_WHY]);
void inspect_event(struct inspect *in);
/* Ends all captures and hangs up; while the clients are still there. */
void inspect_close(struct inspect *in);

/* Writes the counters that are not 0 to the log, a line each. */
void inspect_log(const struct inspect *in);

#endif
