/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxed, the daemon of a host: options, and leaving the terminal. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon.h"
#include "detach.h"
#include "log.h"
#include "option.h"
#include "rundir.h"
#include "standard_fds.h"
#include "status.h"

#define LOG_NAME "urxed.log"

static const char usage[] =
	"usage: urxed [OPTION]...\n"
	"Gives this host's processes the RDMA device urxe0. Returns once it serves them.\n"
	"\n"
	"  --uplink SPEC        join a real Ethernet: af_packet:IFACE, "
	"af_xdp:IFACE,xdp_prog=FILE,\n"
	"                       tap:NAME, pcap:FILE or dpdk:ARGS; may be given more than once\n"
	"  --address ADDR/LEN[@VLAN]\n"
	"                       one more address of this host, in a VLAN or not; may be given\n"
	"                       more than once\n"
	"  --pkey 0xNNNN        the next entry of the P_Key table, instead of 0xffff alone;\n"
	"                       may be given more than once\n"
	"  --run-dir DIR        where clients find the daemon; default $URXE_DIR, else\n"
	"                       /run/urxe/NETNS (root), $XDG_RUNTIME_DIR/urxe/NETNS or\n"
	"                       /tmp/urxe-UID/NETNS\n"
	"  --private            leave when no client has been there for 5 s\n"
	"  --foreground         stay in the foreground, log to standard error\n"
	"  --help, --version\n"
	"\n"
	"SIGTERM ends it and removes what it made; SIGUSR1 writes its counters to urxed.log\n"
	"in the run directory.\n";

struct arguments {
	struct daemon_options options;
	const char *run_dir;
	bool foreground;
};

static int append(const char **list, uint32_t *n, uint32_t max, const char *what)
{
	if (*n == max) {
		log_line("%s %s is one too many: there may be %u", what, optarg, max);
		return STATUS_USAGE;
	}
	list[(*n)++] = optarg;
	return 0;
}

static const struct option long_options[] = {{"uplink", required_argument, NULL, 'u'},
					     {"address", required_argument, NULL, 'a'},
					     {"pkey", required_argument, NULL, 'k'},
					     {"run-dir", required_argument, NULL, 'd'},
					     {"private", no_argument, NULL, 'p'},
					     {"foreground", no_argument, NULL, 'f'},
					     {"help", no_argument, NULL, 'h'},
					     {"version", no_argument, NULL, 'v'},
					     {0}};

static int parse(int argc, char **argv, struct arguments *a)
{
	struct daemon_options *o = &a->options;
	int opt, at = optind, rc = 0;

	for (; !rc && (opt = getopt_long(argc, argv, ":", long_options, NULL)) != -1; at = optind) {
		switch (opt) {
		case 'u': rc = append(o->uplinks, &o->n_uplinks, DAEMON_UPLINKS, "uplink"); break;
		case 'a':
			rc = append(o->addresses, &o->n_addresses, DAEMON_ADDRESSES, "address");
			break;
		case 'k': rc = append(o->pkeys, &o->n_pkeys, DAEMON_PKEYS, "P_Key"); break;
		case 'd': a->run_dir = optarg; break;
		case 'p': o->private = true; break;
		case 'f': a->foreground = true; break;
		case 'h': fputs(usage, stdout); exit(0);
		case 'v': puts("urxed " URXE_VERSION); exit(0);
		case ':':
			log_line("option %s needs a value; see urxed --help",
				 option_refused(argv, at));
			return STATUS_USAGE;
		default:
			log_line("unknown option %s; see urxed --help", option_refused(argv, at));
			return STATUS_USAGE;
		}
	}
	if (!rc && optind < argc) {
		log_line("unexpected argument %s; see urxed --help", argv[optind]);
		rc = STATUS_USAGE;
	}
	return rc;
}

/* Before DPDK starts threads, which would otherwise take the signals. */
static void block_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* A client takes about five descriptors. */
static void raise_descriptor_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}

static int serve(const struct arguments *a, int ready_fd)
{
	char why[DAEMON_WHY], log_path[RUNDIR_MAX + sizeof(LOG_NAME)];
	struct daemon *d;
	int rc;

	rc = daemon_start(&a->options, &d, why);
	if (rc) {
		log_line("%s", why);
		return rc == -EBUSY ? STATUS_BUSY : STATUS_FAILED;
	}
	snprintf(log_path, sizeof(log_path), "%s/" LOG_NAME, a->options.run_dir);
	if (ready_fd >= 0)
		rc = detach_ready(ready_fd, log_path);
	if (rc)
		log_line("cannot write %s: %s", log_path, strerror(-rc));
	else
		rc = daemon_run(d);
	if (ready_fd >= 0)
		rundir_remove(a->options.run_dir, LOG_NAME);
	daemon_stop(d);
	return rc ? STATUS_FAILED : 0;
}

int main(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX], why[RUNDIR_WHY];
	struct arguments a = {0};
	int rc, ready_fd = -1;

	fill_standard_fds();
	log_name = "urxed";
	rc = parse(argc, argv, &a);
	if (rc)
		return rc;
	if (rundir_path(a.run_dir, run_dir, why)) {
		log_line("%s", why);
		return STATUS_FAILED;
	}
	a.options.run_dir = run_dir;
	block_signals();
	raise_descriptor_limit();
	if (!a.foreground) {
		ready_fd = detach_begin();
		if (ready_fd < 0) {
			log_line("cannot start in the background: %s", strerror(-ready_fd));
			return STATUS_FAILED;
		}
	}
	return serve(&a, ready_fd);
}
