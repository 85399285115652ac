/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/monitor.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/epoll_watch.h"
#include "urxed/report/report.h"
#include "urxed/report/state_query.h"
#include "urxed/report/telemetry.h"

void monitor_init(struct monitor *m, const char *run_dir, bool private, struct sessions *sessions,
		  const struct uplink_set *uplinks, const struct rdmacm *rdmacm,
		  const struct hca_monitor *hca)
{
	*m = (struct monitor){.run_dir = run_dir,
			      .private = private,
			      .sessions = sessions,
			      .uplinks = uplinks,
			      .rdmacm = rdmacm,
			      .hca = hca,
			      .started = now_ns(),
			      .control.epoll_fd = -1};
	capture_taps_init(&m->captures, sessions);
}

static int make_report(void *ctx, int client)
{
	struct monitor *m = ctx;
	const struct report report = {.run_dir = m->run_dir,
				      .private = m->private,
				      .uptime_ns = now_ns() - m->started,
				      .captures = m->captures.n,
				      .sessions = m->sessions,
				      .rdmacm = m->rdmacm,
				      .hca = m->hca};

	if (client >= 0)
		state_query_send(m->sessions, client);
	return report_make(&report);
}

static int start_capture(void *ctx, int socket, const char *port, bool record)
{
	struct monitor *m = ctx;

	return capture_taps_start(&m->captures, socket, port, record);
}

static void record_processes(void *ctx, int socket)
{
	struct monitor *m = ctx;

	capture_taps_record(&m->captures, socket);
}

static bool end_capture_of_socket(void *ctx, int socket)
{
	struct monitor *m = ctx;

	return capture_taps_end(&m->captures, socket);
}

static const struct control_ops control_ops = {make_report, start_capture, record_processes,
					       end_capture_of_socket};

int monitor_open(struct monitor *m, char error[MONITOR_ERROR])
{
	int rc = control_open(&m->control, m->run_dir, &control_ops, m);

	if (rc) {
		snprintf(error, MONITOR_ERROR, "cannot listen in %s: %s", m->run_dir,
			 strerror(-rc));
		return rc;
	}
	if (telemetry_start())
		log_line("cannot register telemetry commands with DPDK");
	return epoll_watch_add(m->sessions->epoll_fd, m->control.epoll_fd, m, error);
}

void monitor_event(struct monitor *m, uint64_t now)
{
	control_event(&m->control, now);
}

uint64_t monitor_tick(struct monitor *m, uint64_t now)
{
	return control_tick(&m->control, now);
}

void monitor_close(struct monitor *m)
{
	capture_taps_end_all(&m->captures);
	control_close(&m->control, m->run_dir);
}

void monitor_log_counters(const struct monitor *m)
{
	uint64_t nics[VNIC_COUNTER_COUNT];
	struct switch_stats all;
	uint32_t i;

	sessions_counters(m->sessions, nics);
	switch_totals(m->sessions->sw, &all);
	for (i = 0; i < VNIC_COUNTER_COUNT; i++)
		if (nics[i])
			log_line("vnic %s: %llu", vnic_counter_name(i),
				 (unsigned long long)nics[i]);
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		if (all.drops[i])
			log_line("dropped %s: %llu", switch_drop_name(i),
				 (unsigned long long)all.drops[i]);
	uplink_set_log_impairments(m->uplinks);
	log_line("%u clients", m->sessions->n);
}
