/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe run: executes a program with liburxe.so preloaded, so that it has the device urxe0. */
#include "urxe/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bad_option.h"
#include "common/exit_status.h"
#include "common/install_paths.h"
#include "common/log.h"
#include "common/rundir.h"
#include "urxe/daemon_connect.h"

static const char usage[] =
	"usage: urxe run [--run-dir DIR] [--transport packet|auto] [--congestion dcqcn|none]\n"
	"                [--] CMD [ARG]...\n"
	"Runs CMD with the RDMA device urxe0, by preloading liburxe.so. If no urxed answers\n"
	"in the run directory, urxe starts one that ends after its last program.\n"
	"\n"
	"  --run-dir DIR  the daemon's directory; default as for urxed, or root's if only\n"
	"                 that one has a daemon\n"
	"  --transport packet|auto\n"
	"                 packet: all messages between processes go in packets; auto, the\n"
	"                 default: the kernel copies WRITEs, READs and large SENDs between\n"
	"                 processes of one user, if it permits that\n"
	"  --congestion dcqcn|none\n"
	"                 dcqcn, the default: congestion marks slow queue pairs down; none:\n"
	"                 packets are not ECN-capable, and nothing slows queue pairs down\n"
	"\n"
	"Exit status: that of CMD; 2 if the device cannot be provided, 126 if CMD cannot be\n"
	"run, 127 if CMD is not found.\n";

static const struct option options[] = {{"run-dir", required_argument, NULL, 'd'},
					{"transport", required_argument, NULL, 't'},
					{"congestion", required_argument, NULL, 'c'},
					{"help", no_argument, NULL, 'h'},
					{0}};

/* Like set_choice, set_preload and daemon_connect, logs an error and returns -1. */
static int set_env(const char *name, const char *value)
{
	if (!setenv(name, value, 1))
		return 0;
	log_line("cannot set %s: %s", name, strerror(errno));
	return -1;
}

struct choice {
	const char *option;
	const char *variable;
	const char *values[2];
};

static const struct choice transport = {"transport", "URXE_TRANSPORT", {"packet", "auto"}};
static const struct choice congestion = {"congestion", "URXE_CONGESTION", {"dcqcn", "none"}};

static int set_choice(const struct choice *choice, const char *value)
{
	if (!strcmp(value, choice->values[0]) || !strcmp(value, choice->values[1]))
		return set_env(choice->variable, value);
	log_line("--%s is %s or %s, not '%s'", choice->option, choice->values[0], choice->values[1],
		 value);
	return -1;
}

/* Returns the index of CMD in argv, or 0. */
static int parse_run_arguments(int argc, char **argv, const char **run_dir)
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
		case 'h': fputs(usage, stdout); exit(0);
		case ':':
			log_line("option %s needs a value; see urxe run --help",
				 bad_option(argv, at));
			return 0;
		default:
			log_line("unknown option %s; see urxe run --help", bad_option(argv, at));
			return 0;
		}
	}
	if (optind < argc)
		return optind;
	log_line("run needs a command, as in: urxe run -- ibv_devinfo");
	return 0;
}

static int set_preload(void)
{
	char lib[PATH_MAX];
	const char *old = getenv("LD_PRELOAD");
	char *value;
	int rc = install_path_liburxe(lib);

	if (rc) {
		log_line("the library %s cannot be read (%s): build or install urxe anew", lib,
			 strerror(-rc));
		return -1;
	}
	if (strpbrk(lib, " :")) {
		log_line("LD_PRELOAD cannot name %s: its path has a space or a colon", lib);
		return -1;
	}
	/* An outer urxe run has preloaded the library already. */
	if (old && !strncmp(old, lib, strlen(lib)) && strchr(" :", old[strlen(lib)]))
		return 0;
	if (asprintf(&value, "%s%s%s", lib, old && *old ? ":" : "", old ? old : "") < 0) {
		log_line("cannot set LD_PRELOAD: no memory");
		return -1;
	}
	rc = set_env("LD_PRELOAD", value);
	free(value);
	return rc;
}

int cmd_run(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX], error[RUNDIR_ERROR];
	const char *given = NULL;
	int cmd = parse_run_arguments(argc, argv, &given), err;

	if (!cmd)
		return STATUS_USAGE;
	if (daemon_choose_run_dir(given, run_dir, error)) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	if (set_preload() || set_env("URXE_DIR", run_dir) || daemon_connect(run_dir) < 0)
		return STATUS_USAGE;
	execvp(argv[cmd], argv + cmd);
	err = errno;
	log_line("cannot run %s: %s", argv[cmd], strerror(err));
	return err == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXEC;
}
