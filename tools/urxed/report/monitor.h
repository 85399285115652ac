/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Serves those that observe a running daemon: reports and captures for the control socket, counters
 * for the log. daemon_start.c and daemon_run.c call this, in the daemon's thread. */
#ifndef URXE_URXED_REPORT_MONITOR_H
#define URXE_URXED_REPORT_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/cm/rdmacm.h"
#include "urxed/hca/hca_monitor.h"
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
	const struct hca_monitor *hca;
	uint64_t started; /* ns, by now_ns */
	struct control control;
	struct capture_taps captures;
};

/* Makes a closed monitor, for which monitor_close does nothing. The pointers must stay valid. */
void monitor_init(struct monitor *m, const char *run_dir, bool private, struct sessions *sessions,
		  const struct uplink_set *uplinks, const struct rdmacm *rdmacm,
		  const struct hca_monitor *hca);
/*
 * Opens the control socket and registers the telemetry commands. The epoll set of `sessions`
 * watches the control socket, with m as data. Returns 0, or a negative errno value and a sentence
 * in `error`.
 */
int monitor_open(struct monitor *m, char error[MONITOR_ERROR]);
/* Ends all captures and closes all connections. Call it before the sessions are closed. */
void monitor_close(struct monitor *m);

/* Logs each counter of vNICs and each kind of switch drop that is not 0, one a line; then the
 * impairments of uplinks, the number of clients, and the counters of rdma_cm and QP1. */
void monitor_log_counters(const struct monitor *m);

#endif
