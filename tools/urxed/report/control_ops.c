/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/control_ops.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/epoll_watch.h"
#include "urxed/report/report.h"
#include "urxed/report/telemetry.h"

void inspect_init(struct inspect *in, const char *run_dir, bool private, struct clients *clients,
		  const struct uplinks *uplinks, const struct rdmacm *rdmacm)
{
	*in = (struct inspect){.run_dir = run_dir,
			       .private = private,
			       .clients = clients,
			       .uplinks = uplinks,
			       .rdmacm = rdmacm,
			       .started = now_ns(),
			       .control.epoll_fd = -1};
	captures_init(&in->captures, clients);
}

static int show(void *ctx, int socket)
{
	struct inspect *in = ctx;
	const struct report report = {.run_dir = in->run_dir,
				      .private = in->private,
				      .uptime_ns = now_ns() - in->started,
				      .captures = in->captures.n,
				      .clients = in->clients,
				      .rdmacm = in->rdmacm};

	if (socket >= 0)
		client_ask(in->clients, socket);
	return report_make(&report);
}

static int capture(void *ctx, int socket, const char *port)
{
	struct inspect *in = ctx;

	return captures_start(&in->captures, socket, port);
}

static bool capture_end(void *ctx, int socket)
{
	struct inspect *in = ctx;

	return captures_end(&in->captures, socket);
}

static const struct control_ops control_ops = {show, capture, capture_end};

int inspect_open(struct inspect *in, char why[INSPECT_WHY])
{
	int rc = control_open(&in->control, in->run_dir, &control_ops, in);

	if (rc) {
		snprintf(why, INSPECT_WHY, "cannot listen in %s: %s", in->run_dir, strerror(-rc));
		return rc;
	}
	if (telemetry_start())
		log_line("DPDK does not take telemetry's commands");
	return watch_add(in->clients->epoll_fd, in->control.epoll_fd, in, why);
}

void inspect_event(struct inspect *in)
{
	control_event(&in->control);
}

void inspect_close(struct inspect *in)
{
	captures_end_all(&in->captures);
	control_close(&in->control, in->run_dir);
}

void inspect_log(const struct inspect *in)
{
	uint64_t nics[VNIC_COUNTER_COUNT];
	struct switch_stats all;
	uint32_t i;

	client_counters(in->clients, nics);
	switch_totals(in->clients->sw, &all);
	for (i = 0; i < VNIC_COUNTER_COUNT; i++)
		if (nics[i])
			log_line("vnic %s: %llu", vnic_counter_name(i),
				 (unsigned long long)nics[i]);
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		if (all.drops[i])
			log_line("dropped %s: %llu", switch_drop_name(i),
				 (unsigned long long)all.drops[i]);
	uplinks_log_faults(in->uplinks);
	log_line("%u clients", in->clients->n);
}
