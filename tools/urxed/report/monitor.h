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

#define MONITOR_ERROR 256

struct monitor {
	const char *run_dir;
	bool private;
	struct sessions *sessions;
	const struct uplink_set *uplinks;
	const struct rdmacm *rdmacm;
	uint64_t started; /* as now_ns */
	struct control control;
	struct capture_taps captures;
};

/* Nobody looks in yet, and it can be closed. What is pointed to stays where it is. */
void monitor_init(struct monitor *in, const char *run_dir, bool private, struct sessions *sessions,
		  const struct uplink_set *uplinks, const struct rdmacm *rdmacm);
/*
 * Takes questions on the control socket, which is watched in the clients' epoll set with
 * `in` as data, and from DPDK's telemetry. On error `error` has one sentence.
 */
int monitor_open(struct monitor *in, char error[MONITOR_ERROR]);
void monitor_event(struct monitor *in);
/* Ends all captures and hangs up; while the clients are still there. */
void monitor_close(struct monitor *in);

/* Writes the counters that are not 0 to the log, a line each. */
void monitor_log_counters(const struct monitor *in);

#endif
