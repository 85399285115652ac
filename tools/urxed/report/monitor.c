/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/monitor.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/epoll_watch.h"
#include "urxed/report/counter_row.h"
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

void monitor_close(struct monitor *m)
{
	capture_taps_end_all(&m->captures);
	control_close(&m->control, m->run_dir);
}

/* Logs the counters that are not 0. */
static void log_counters(const char *prefix, const struct counter_row *rows, size_t n,
			 const uint64_t *values)
{
	for (size_t i = 0; i < n; i++)
		if (values[i])
			log_line("%s%s: %llu", prefix, rows[i].name, (unsigned long long)values[i]);
}

void monitor_log_counters(const struct monitor *m)
{
	static const struct counter_row nic_rows[] = {VNIC_COUNTER_LIST(COUNTER_ROW)};
	static const struct counter_row drop_rows[] = {SWITCH_DROP_LIST(COUNTER_ROW)};
	static const struct counter_row cm_rows[] = {CM_COUNTER_LIST(COUNTER_ROW)};
	static const struct counter_row gsi_rows[] = {GSI_DROP_LIST(COUNTER_ROW)};
	uint64_t nics[VNIC_COUNTER_COUNT];
	struct switch_stats all;

	sessions_counters(m->sessions, nics);
	switch_totals(m->sessions->sw, &all);
	log_counters("vnic ", COUNTER_ROWS(nic_rows), nics);
	log_counters("dropped ", COUNTER_ROWS(drop_rows), all.drops);
	uplink_set_log_impairments(m->uplinks);
	log_line("%u clients", m->sessions->n);
	log_counters("", COUNTER_ROWS(cm_rows), cm_counters(m->rdmacm->ucma.cma.cm));
	log_counters("dropped ", COUNTER_ROWS(gsi_rows), m->rdmacm->gsi.drops);
}
