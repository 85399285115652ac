/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/monitor.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/epoll_watch.h"
#include "urxed/report/report.h"
#include "urxed/report/telemetry.h"

void monitor_init(struct monitor *in, const char *run_dir, bool private, struct sessions *sessions,
		  const struct uplink_set *uplinks, const struct rdmacm *rdmacm)
{
	*in = (struct monitor){.run_dir = run_dir,
			       .private = private,
			       .sessions = sessions,
			       .uplinks = uplinks,
			       .rdmacm = rdmacm,
			       .started = now_ns(),
			       .control.epoll_fd = -1};
	capture_taps_init(&in->captures, sessions);
}

static int show(void *ctx, int socket)
{
	struct monitor *in = ctx;
	const struct report report = {.run_dir = in->run_dir,
				      .private = in->private,
				      .uptime_ns = now_ns() - in->started,
				      .captures = in->captures.n,
				      .sessions = in->sessions,
				      .rdmacm = in->rdmacm};

	if (socket >= 0)
		sessions_ask_state(in->sessions, socket);
	return report_make(&report);
}

static int capture(void *ctx, int socket, const char *port)
{
	struct monitor *in = ctx;

	return capture_taps_start(&in->captures, socket, port);
}

static bool capture_end(void *ctx, int socket)
{
	struct monitor *in = ctx;

	return capture_taps_end(&in->captures, socket);
}

static const struct control_ops control_ops = {show, capture, capture_end};

int monitor_open(struct monitor *in, char error[MONITOR_ERROR])
{
	int rc = control_open(&in->control, in->run_dir, &control_ops, in);

	if (rc) {
		snprintf(error, MONITOR_ERROR, "cannot listen in %s: %s", in->run_dir,
			 strerror(-rc));
		return rc;
	}
	if (telemetry_start())
		log_line("DPDK does not take telemetry's commands");
	return epoll_watch_add(in->sessions->epoll_fd, in->control.epoll_fd, in, error);
}

void monitor_event(struct monitor *in)
{
	control_event(&in->control);
}

void monitor_close(struct monitor *in)
{
	capture_taps_end_all(&in->captures);
	control_close(&in->control, in->run_dir);
}

void monitor_log_counters(const struct monitor *in)
{
	uint64_t nics[VNIC_COUNTER_COUNT];
	struct switch_stats all;
	uint32_t i;

	sessions_counters(in->sessions, nics);
	switch_totals(in->sessions->sw, &all);
	for (i = 0; i < VNIC_COUNTER_COUNT; i++)
		if (nics[i])
			log_line("vnic %s: %llu", vnic_counter_name(i),
				 (unsigned long long)nics[i]);
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		if (all.drops[i])
			log_line("dropped %s: %llu", switch_drop_name(i),
				 (unsigned long long)all.drops[i]);
	uplink_set_log_impairments(in->uplinks);
	log_line("%u clients", in->sessions->n);
}
