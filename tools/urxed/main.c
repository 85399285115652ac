/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxed, the daemon of a host: reads options, goes to the background and runs daemon.h. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/command_line.h"
#include "common/log.h"
#include "common/rundir.h"
#include "common/standard_fds.h"
#include "urxed/config.h"
#include "urxed/daemon.h"
#include "urxed/detach.h"
#include "urxed/options.h"
#include "urxed/sd_notify.h"
#include "urxed/session/quota.h"
#include "urxed/vhost/vhost_main.h"

#define LOG_NAME "urxed.log"

/* Root's daemon of the default run directory reads this file if it exists. */
#define CONFIG_SYSTEM "/etc/urxe.conf"

static const char usage_head[] =
	"usage: urxed [OPTION]...\n"
	"Gives the processes of this host the RDMA device urxe0. urxed goes to the background and\n"
	"returns when processes can use the device.\n"
	"\n"
	"  --config FILE        read options from FILE too, one a line: the option's name\n"
	"                       without dashes, then its value; default for root's daemon\n"
	"                       in its default directory: " CONFIG_SYSTEM ", if that file exists\n";

static const char usage_tail[] =
	"  --help, --version\n"
	"\n"
	"On SIGTERM or SIGHUP, urxed removes the files that it has made, and ends. On SIGUSR1,\n"
	"urxed writes its counters to urxed.log in the run directory.\n";

/* getopt_long() values of options outside options_rows; a row's value is its index plus 1. */
enum { OPT_CONFIG = OPTIONS + 1, OPT_HELP, OPT_VERSION };

static void fill_long_options(struct option list[OPTIONS + 4])
{
	for (int i = 0; i < OPTIONS; i++)
		list[i] = (struct option){options_rows[i].name,
					  options_rows[i].argument ? required_argument
								   : optional_argument,
					  NULL, i + 1};
	list[OPTIONS] = (struct option){"config", required_argument, NULL, OPT_CONFIG};
	list[OPTIONS + 1] = (struct option){"help", no_argument, NULL, OPT_HELP};
	list[OPTIONS + 2] = (struct option){"version", no_argument, NULL, OPT_VERSION};
	list[OPTIONS + 3] = (struct option){0};
}

static void print_help(void)
{
	fputs(usage_head, stdout);
	options_print();
	fputs(usage_tail, stdout);
}

/* Sets the option with the getopt_long() value `opt`. given[i]: the command line has already had
 * the option of row i. Returns 0, or an exit status after it has logged an error. */
static int apply_option(struct options *o, int opt, bool given[OPTIONS])
{
	const struct options_row *row = &options_rows[opt - 1];
	char error[OPTIONS_ERROR];
	int rc;

	if (row->once && given[opt - 1]) {
		log_line("option --%s is given twice", row->name);
		return STATUS_USAGE;
	}
	given[opt - 1] = true;
	rc = options_set(o, row, optarg, error);

	if (rc)
		log_line("%s", error);
	return rc ? STATUS_USAGE : 0;
}

/* Parses the command line into *o; may be called again with the same argv. Sets *config only if
 * --config is given. Returns 0, or an exit status after it has logged an error. */
static int parse_command_line(int argc, char **argv, struct options *o, const char **config)
{
	struct option list[OPTIONS + 4];
	bool given[OPTIONS] = {false};
	int opt, at, rc = 0;

	fill_long_options(list);
	optind = 0; /* begin anew */
	for (at = 1; !rc && (opt = getopt_long(argc, argv, ":", list, NULL)) != -1; at = optind) {
		switch (opt) {
		case OPT_CONFIG: *config = optarg; break;
		case OPT_HELP: print_help(); exit(0);
		case OPT_VERSION: puts("urxed " URXE_VERSION); exit(0);
		case ':':
		case '?': log_bad_option("urxed", opt, argv, at); return STATUS_USAGE;
		default: rc = apply_option(o, opt, given);
		}
	}
	if (!rc && optind < argc) {
		log_line("unexpected argument %s; see urxed --help", argv[optind]);
		rc = STATUS_USAGE;
	}
	return rc;
}

/* Returns the configuration file to read, or NULL. `given`: the value of --config, or NULL. */
static const char *choose_config(const struct options *o, const char *given)
{
	if (given || o->daemon.private || geteuid() || !rundir_is_default(o->run_dir))
		return given;
	return access(CONFIG_SYSTEM, F_OK) ? NULL : CONFIG_SYSTEM;
}

/*
 * Parses the command line once to find the configuration file, and again after the file. So the
 * values of a repeatable option on the command line follow those of the file, and other options of
 * the command line override the file. Returns 0 or an exit status.
 */
static int read_options(int argc, char **argv, struct options *o)
{
	struct options first = {0};
	const char *config = NULL;
	char error[OPTIONS_ERROR];
	char *text; /* never freed: the options point into it while the daemon runs */
	int rc = parse_command_line(argc, argv, &first, &config);

	if (rc)
		return rc;
	config = choose_config(&first, config);
	if (config && config_read(o, config, &text, error)) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	return parse_command_line(argc, argv, o, &config);
}

/*
 * Blocks the signals that the daemon reads. Called before DPDK starts threads, which inherit the
 * mask and so do not handle the signals.
 */
static void set_up_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* with SIG_IGN, which may be inherited, waitpid() fails */
	signal(SIGXFSZ, SIG_IGN); /* beyond RLIMIT_FSIZE, write() fails with EFBIG instead */
	daemon_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Enough for the daemon's own descriptors, and those of three programs and their urxe run
 * (quota.c). */
#define DESCRIPTORS_LEAST 128
/* Linux' default; the daemon logs a lower limit. */
#define DESCRIPTORS_USUAL 1024

/*
 * Raises the soft limit of descriptors to the hard one. False: the hard limit is too low for the
 * daemon.
 */
static bool raise_descriptor_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return true;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
	if (lim.rlim_cur < DESCRIPTORS_LEAST)
		log_line("urxed needs a limit of %d descriptors or more, but the hard limit is "
			 "%lu: raise it (ulimit -n, LimitNOFILE=)",
			 DESCRIPTORS_LEAST, (unsigned long)lim.rlim_cur);
	else if (lim.rlim_cur < DESCRIPTORS_USUAL)
		log_line("with a limit of %lu descriptors (ulimit -n), urxed serves %u programs",
			 (unsigned long)lim.rlim_cur, quota_connections(UINT32_MAX) / 2);
	return lim.rlim_cur >= DESCRIPTORS_LEAST;
}

/* Also names the limit of file sizes if it is the reason, because the text of EFBIG does not. */
static void log_start_error(const char *error, int rc)
{
	struct rlimit lim;

	if (rc == -EFBIG && !getrlimit(RLIMIT_FSIZE, &lim) && lim.rlim_cur != RLIM_INFINITY)
		log_line("%s; the limit of file sizes is %lu bytes: raise it (ulimit -f, "
			 "LimitFSIZE=)",
			 error, (unsigned long)lim.rlim_cur);
	else
		log_line("%s", error);
}

static int run_daemon(const struct options *o, int ready_fd)
{
	char error[DAEMON_ERROR], log_path[RUNDIR_MAX + sizeof(LOG_NAME)];
	struct daemon *d;
	int rc;

	rc = daemon_start(&o->daemon, &d, error);
	if (rc) {
		log_start_error(error, rc);
		return rc == -EBUSY ? STATUS_BUSY : STATUS_FAILED;
	}
	snprintf(log_path, sizeof(log_path), "%s/" LOG_NAME, o->daemon.run_dir);
	if (ready_fd >= 0)
		rc = detach_ready(ready_fd, log_path);
	else
		sd_notify_ready();
	if (rc)
		log_line("cannot write %s: %s", log_path, strerror(-rc));
	else
		rc = daemon_run(d);
	if (ready_fd >= 0)
		rundir_remove(o->daemon.run_dir, LOG_NAME);
	daemon_stop(d);
	return rc ? STATUS_FAILED : 0;
}

int main(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX], error[RUNDIR_ERROR];
	struct options o = {0};
	int rc, ready_fd = -1;

	standard_fds_fill();
	standard_fds_check_output();
	umask(022);
	log_name = "urxed";
	if (argc == 3 && !strcmp(argv[1], VHOST_MAIN_OPTION))
		return vhost_main(argv[2]);
	rc = read_options(argc, argv, &o);
	if (rc)
		return rc;
	if (rundir_path(o.run_dir, run_dir, error)) {
		log_line("%s", error);
		return STATUS_FAILED;
	}
	o.daemon.run_dir = run_dir;
	o.daemon.own_dir = rundir_is_default(o.run_dir);
	set_up_signals();
	if (!raise_descriptor_limit())
		return STATUS_FAILED;
	if (!o.foreground) {
		ready_fd = detach_begin();
		if (ready_fd < 0) {
			log_line("cannot start in the background: %s", strerror(-ready_fd));
			return STATUS_FAILED;
		}
	}
	return run_daemon(&o, ready_fd);
}
