/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe show: prints the state of the daemon and its processes, as tables or JSON. */
#include "urxe/cmd.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/command_line.h"
#include "common/json_fields.h"
#include "common/log.h"
#include "common/quantity.h"
#include "common/rundir.h"
#include "urxe/show/report_jobs.h"
#include "urxe/show/report_paths.h"
#include "urxe/show/report_print.h"
#include "urxed/report/control_client.h"

static const char usage[] =
	"usage: urxe show [TOPIC] [--json] [--long] [--wait TIME] [--run-dir DIR]\n"
	"Shows the state of the run directory's urxed; without a topic, an overview.\n"
	"\n"
	"  host           name, MAC, MTU, GID and P_Key tables, and the daemon itself\n"
	"  device         the HCA or the software that backs the device, and why no other HCA\n"
	"  port           the ports of the switch, with their frames in and out\n"
	"  qp             the queue pairs of all processes; with --long all values of each\n"
	"  mr             the memory regions of all processes\n"
	"  counter        every counter that is not 0, of the daemon and of processes\n"
	"  lease          the queue pair numbers of each process, and the process's job\n"
	"  id             the rdma_cm IDs of all processes: listeners and connections\n"
	"  transport      the path of frames between connected processes, and its reason\n"
	"\n"
	"  --json         one JSON document, with all counters\n"
	"  --long         also counters that are 0, and the meaning of each\n"
	"  --wait TIME    time within which processes must begin to answer, such as 2s; default\n"
	"                 100ms\n"
	"  --run-dir DIR  the daemon's directory; default as for urxed\n"
	"\n"
	"Exit status: 0; 1 if no daemon answers; 2 for a wrong command line.\n";

static const struct option options[] = {
	{"json", no_argument, NULL, 'j'},       {"long", no_argument, NULL, 'l'},
	{"wait", required_argument, NULL, 'w'}, {"run-dir", required_argument, NULL, 'd'},
	{"help", no_argument, NULL, 'h'},       {0}};

struct arguments {
	const char *topic; /* NULL = the overview */
	const char *run_dir;
	uint32_t wait_ms;
	bool json;
	bool long_form;
};

/* Reads the value of --wait in ms. False: it is invalid; logged. */
static bool read_wait(const char *text, uint32_t *ms)
{
	uint64_t ns;

	if (quantity_read(text, quantity_time, &ns) && ns >= NS_PER_MS &&
	    ns <= CONTROL_CLIENT_LONGEST_S * NS_PER_SEC) {
		*ms = (uint32_t)(ns / NS_PER_MS);
		return true;
	}
	log_line("--wait is a time from 1ms to %ds, not '%s'", CONTROL_CLIENT_LONGEST_S, text);
	return false;
}

static int parse_show_arguments(int argc, char **argv, struct arguments *a)
{
	int opt, at = optind;

	for (; (opt = getopt_long(argc, argv, ":", options, NULL)) != -1; at = optind) {
		switch (opt) {
		case 'j': a->json = true; break;
		case 'l': a->long_form = true; break;
		case 'd': a->run_dir = optarg; break;
		case 'w':
			if (!read_wait(optarg, &a->wait_ms))
				return STATUS_USAGE;
			break;
		case 'h': fputs(usage, stdout); exit(0);
		default: log_bad_option("urxe show", opt, argv, at); return STATUS_USAGE;
		}
	}
	if (optind < argc)
		a->topic = argv[optind++];
	if (optind < argc)
		log_line("show takes one topic; see urxe show --help");
	else if (a->topic && !report_print_is_topic(a->topic))
		log_line("unknown topic %s; see urxe show --help", a->topic);
	else
		return 0;
	return STATUS_USAGE;
}

static json_int_t get_lease_port(const json_t *lease)
{
	return json_get_number(lease, "port");
}

/* Is the lease the first of its process? */
static bool is_first_lease(const json_t *leases, size_t index)
{
	json_int_t port = get_lease_port(json_array_get(leases, index));

	for (size_t i = 0; i < index; i++)
		if (get_lease_port(json_array_get(leases, i)) == port)
			return false;
	return true;
}

/*
 * Logs the processes that did not answer urxe, for example because they are stopped, and for each
 * answer that urxe has refused the reason.
 */
static void log_silent_processes(const json_t *report, const char *run_dir)
{
	const json_t *leases = json_object_get(report, "leases");
	const char *process, *job, *refused;
	bool silent = false;
	json_t *lease;
	size_t i;

	json_array_foreach(leases, i, lease)
	{
		process = json_get_text(lease, "process");
		if (!process || !json_is_false(json_object_get(lease, "answered")) ||
		    !is_first_lease(leases, i))
			continue;
		refused = json_get_text(lease, "refused");
		if (refused)
			log_line("the answer of %s is not shown: %s", process, refused);
		else {
			job = json_get_text(lease, "job");
			log_line("%s of job %s does not answer", process, job ? job : "-");
			silent = true;
		}
	}
	if (silent)
		log_line("these processes use the daemon of %s; --run-dir names another one, and "
			 "--wait gives processes more time",
			 run_dir);
}

int cmd_show(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX],
		error[CONTROL_CLIENT_ERROR > RUNDIR_ERROR ? CONTROL_CLIENT_ERROR : RUNDIR_ERROR];
	struct arguments a = {.wait_ms = CONTROL_CLIENT_WAIT_MS};
	bool processes;
	json_t *report;
	int rc = parse_show_arguments(argc, argv, &a);

	if (rc)
		return rc;
	if (rundir_path(a.run_dir, run_dir, error)) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	processes = a.topic ? report_print_asks_processes(a.topic) : a.json;
	report = control_client_report(run_dir, processes ? a.wait_ms : 0, error);
	if (!report) {
		log_line("%s", error);
		return STATUS_FAILED;
	}
	report_jobs_add(report);
	if (processes) {
		report_paths_add(report);
		log_silent_processes(report, run_dir);
	}
	if (a.json)
		report_print_json(stdout, report, a.topic);
	else
		report_print_text(stdout, report, a.topic, a.long_form);
	json_decref(report);
	return 0;
}
