/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe doctor: tells what works on this host, what does not, and the command that helps. */
#include "urxe/cmd.h"

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/command_line.h"
#include "common/log.h"
#include "common/rundir.h"
#include "urxe/daemon_connect.h"
#include "urxe/doctor/check.h"

static const char usage[] =
	"usage: urxe doctor [--json] [--run-dir DIR]\n"
	"Checks whether programs on this host can have the device, and finds settings that slow\n"
	"it down. Each line is 'ok', 'note' (works, but slower or with less) or 'fault'; a line\n"
	"after '$' is the command that repairs it. urxe doctor changes nothing on the host.\n"
	"\n"
	"  --json         one JSON document: findings, each with subject, status, text, remedy\n"
	"  --run-dir DIR  the daemon's directory; default as for urxe run\n"
	"\n"
	"Exit status: 0; 1 if programs cannot have the device; 2 for a wrong command line.\n";

/* --probe is not for users: device_check.c passes it. */
static const struct option options[] = {{"json", no_argument, NULL, 'j'},
					{"run-dir", required_argument, NULL, 'd'},
					{"probe", no_argument, NULL, 'p'},
					{"help", no_argument, NULL, 'h'},
					{0}};

struct arguments {
	const char *run_dir;
	bool json;
	bool probe;
};

static int parse_doctor_arguments(int argc, char **argv, struct arguments *a)
{
	int opt, at = optind;

	for (; (opt = getopt_long(argc, argv, ":", options, NULL)) != -1; at = optind) {
		switch (opt) {
		case 'j': a->json = true; break;
		case 'd': a->run_dir = optarg; break;
		case 'p': a->probe = true; break;
		case 'h': fputs(usage, stdout); exit(0);
		default: log_bad_option("urxe doctor", opt, argv, at); return STATUS_USAGE;
		}
	}
	if (optind == argc)
		return 0;
	log_line("doctor takes no argument; see urxe doctor --help");
	return STATUS_USAGE;
}

static void print_findings(const struct findings *f, bool json)
{
	json_t *document;

	if (!json) {
		findings_print(stdout, f);
	} else {
		document = json_pack("{s:O}", "findings", f->list);
		json_dumpf(document, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		puts("");
		json_decref(document);
	}
}

/* Checks a run directory, and the daemon that serves it. */
static void check_served(struct findings *f, const char *run_dir)
{
	bool served = check_daemon(f, run_dir);

	check_device(f, run_dir);
	check_run_dir(f, run_dir, served);
}

int cmd_doctor(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX], error[RUNDIR_ERROR];
	struct findings f = {json_array(), FINDING_OK};
	struct arguments a = {0};
	int rc = parse_doctor_arguments(argc, argv, &a);

	if (rc)
		return rc;
	if (a.probe)
		return device_probe();
	signal(SIGCHLD, SIG_DFL); /* with SIG_IGN, which may be inherited, pclose() fails */
	rc = daemon_choose_run_dir(a.run_dir, run_dir, error);
	if (rc && !rundir_is_default(a.run_dir)) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	if (rc)
		finding_add(&f, "device", FINDING_FAULT, "urxe run --run-dir " MEMORY_DIR " -- CMD",
			    "%s", error);
	else
		check_served(&f, run_dir);
	check_copies(&f);
	check_limits(&f);
	check_kernel(&f);
	check_uplinks(&f);
	check_interfaces(&f);
	check_firewall(&f);
	print_findings(&f, a.json);
	json_decref(f.list);
	return f.worst == FINDING_FAULT ? STATUS_FAILED : 0;
}
