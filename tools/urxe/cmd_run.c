/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe run: executes a program with liburxe.so preloaded, so that it has the device urxe0. */
#include "urxe/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/command_line.h"
#include "common/log.h"
#include "common/quantity.h"
#include "common/rundir.h"
#include "urxe/daemon_connect.h"
#include "urxe/init_process.h"
#include "urxe/preload.h"
#include "urxe/program_check.h"
#include "urxe/show/report_jobs.h"

static const char usage[] =
	"usage: urxe run [--run-dir DIR] [--transport packet|auto] [--congestion dcqcn|none]\n"
	"                [--way hca|engine|auto] [--hca-gone error|engine]\n"
	"                [--hca auto|off|NAME[:PORT]] [--device NAME] [--] CMD [ARG]...\n"
	"Runs CMD with the RDMA device urxe0, by preloading liburxe.so. If no urxed answers\n"
	"in the run directory, urxe starts a private urxed, which ends after its last program.\n"
	"\n"
	"  --run-dir DIR  the daemon's directory; default as for urxed, or that of root's\n"
	"                 daemon if no other daemon runs\n"
	"  --transport packet|auto\n"
	"                 packet: urxe sends all messages between processes in packets; auto,\n"
	"                 the default: the kernel copies WRITEs, READs and large SENDs between\n"
	"                 processes of one user, if the kernel permits such copies\n"
	"  --congestion dcqcn|none\n"
	"                 dcqcn, the default: queue pairs send slower when switches mark their\n"
	"                 packets (ECN); none: packets are not ECN-capable, and queue pairs do\n"
	"                 not send slower\n"
	"  --way hca|engine|auto\n"
	"                 executor of the queue pairs if an HCA backs the device; auto, the\n"
	"                 default: the engine for peers on this host, the HCA for other peers\n"
	"  --hca-gone error|engine\n"
	"                 if urxed stops using an HCA: error, the default: the HCA's queue pairs\n"
	"                 fail; engine: the engine continues them in software, also while the\n"
	"                 HCA's port is down\n"
	"  --hca auto|off|NAME[:PORT]\n"
	"  --device NAME  as for urxed, for a daemon that urxe starts\n"
	"\n"
	"Exit status: that of CMD; 2 if the device cannot be provided, 126 if CMD cannot be\n"
	"run, 127 if CMD is not found.\n";

static const struct option options[] = {{"run-dir", required_argument, NULL, 'd'},
					{"transport", required_argument, NULL, 't'},
					{"congestion", required_argument, NULL, 'c'},
					{"way", required_argument, NULL, 'w'},
					{"hca-gone", required_argument, NULL, 'g'},
					{"hca", required_argument, NULL, 'H'},
					{"device", required_argument, NULL, 'D'},
					{"help", no_argument, NULL, 'h'},
					{0}};

struct choice {
	const char *option; /* name without dashes; NULL: the variable has no option */
	const char *variable;
	const char *values[6]; /* NULL at the end */
};

static const struct choice transport = {"transport", "URXE_TRANSPORT", {"packet", "auto"}};
static const struct choice congestion = {"congestion", "URXE_CONGESTION", {"dcqcn", "none"}};
static const struct choice way = {"way", "URXE_WAY", {"hca", "engine", "auto"}};
static const struct choice log_level = {
	NULL, "URXE_LOG", {"none", "error", "warning", "info", "debug"}};
static const struct choice hca_gone = {"hca-gone", "URXE_HCA_GONE", {"error", "engine"}};

/* Sets the variable of a choice to a value. Returns 0; -1 if the choice does not have the value,
 * which is logged. `name`: of the option or variable that had the value, for the error. */
static int set_value(const struct choice *choice, const char *name, const char *value)
{
	char names[64] = "";

	for (const char *const *v = choice->values; *v; v++) {
		if (!strcmp(value, *v))
			return preload_set_env(choice->variable, value);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 v == choice->values ? ""
			 : v[1]              ? ", "
					     : " or ",
			 *v);
	}
	log_line("%s is %s, not '%s'", name, names, value);
	return -1;
}

static int set_choice(const struct choice *choice, const char *value)
{
	char name[32];

	snprintf(name, sizeof(name), "--%s", choice->option);
	return set_value(choice, name, value);
}

/* The limit of URXE_RECONNECT_S, as in verbs/daemon/reconnect.c, which reads the variable. */
#define RECONNECT_SECONDS_MAX 3600

static int check_reconnect_time(void)
{
	const char *text = getenv("URXE_RECONNECT_S");
	uint64_t seconds;

	if (!text || !*text ||
	    (!text[strspn(text, "0123456789")] && quantity_read(text, quantity_count, &seconds) &&
	     seconds <= RECONNECT_SECONDS_MAX))
		return 0;
	log_line("URXE_RECONNECT_S is a number of seconds up to %d, not '%s'",
		 RECONNECT_SECONDS_MAX, text);
	return -1;
}

/* Checks the variables of liburxe.so that the user has set, because the library would ignore a
 * wrong value. Returns 0; -1 after an error, which is logged. */
static int check_environment(void)
{
	static const struct choice *const all[] = {&transport, &congestion, &way, &hca_gone,
						   &log_level};
	int rc = check_reconnect_time();

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !rc; i++) {
		const char *value = getenv(all[i]->variable);

		if (value && *value)
			rc = set_value(all[i], all[i]->variable, value);
	}
	return rc;
}

/* Names the job after its first program, unless the caller has named it. Returns 0; -1 after an
 * error, which is logged. */
static int name_job(const char *cmd)
{
	const char *slash = strrchr(cmd, '/');
	char job[JOB_NAME];

	if (getenv(JOB_VARIABLE))
		return 0;
	snprintf(job, sizeof(job), "%.40s-%d", slash ? slash + 1 : cmd, (int)getpid());
	return preload_set_env(JOB_VARIABLE, job);
}

/* Returns the index of CMD in argv; 0 after an error, which is logged. */
static int parse_run_arguments(int argc, char **argv, const char **run_dir,
			       struct daemon_start_options *daemon)
{
	int opt, at = optind;

	/* "+": the arguments behind CMD belong to CMD. */
	for (; (opt = getopt_long(argc, argv, "+:", options, NULL)) != -1; at = optind) {
		switch (opt) {
		case 'd': *run_dir = optarg; break;
		case 't':
			if (set_choice(&transport, optarg))
				return 0;
			break;
		case 'c':
			if (set_choice(&congestion, optarg))
				return 0;
			break;
		case 'w':
			if (set_choice(&way, optarg))
				return 0;
			break;
		case 'g':
			if (set_choice(&hca_gone, optarg))
				return 0;
			break;
		case 'H': daemon->hca = optarg; break;
		case 'D': daemon->device = optarg; break;
		case 'h': fputs(usage, stdout); exit(0);
		default: log_bad_option("urxe run", opt, argv, at); return 0;
		}
	}
	if (optind < argc)
		return optind;
	log_line("run needs a command, as in: urxe run -- ibv_devinfo");
	return 0;
}

int cmd_run(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX], error[RUNDIR_ERROR];
	struct daemon_start_options daemon = {0};
	const char *given = NULL;
	int cmd, err, status;

	preload_remember();
	cmd = parse_run_arguments(argc, argv, &given, &daemon);
	if (!cmd || check_environment())
		return STATUS_USAGE;
	if (daemon_choose_run_dir(given, run_dir, error)) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	if (program_check(argv[cmd]))
		return STATUS_CANNOT_EXEC;
	/* preload_set comes before the daemon's start: the daemon looks for its HCA below the outer
	 * run directory, which preload_set names in the environment. */
	if (name_job(argv[cmd]) || preload_set(run_dir) || daemon_connect(run_dir, &daemon) < 0)
		return STATUS_USAGE;
	preload_check_outer(run_dir);
	if (getpid() == 1) {
		status = init_process_fork();
		if (status >= 0)
			return status;
	}
	execvp(argv[cmd], argv + cmd);
	err = errno;
	log_line("cannot run %s: %s", argv[cmd], strerror(err));
	return err == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXEC;
}
