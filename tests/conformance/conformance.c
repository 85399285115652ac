/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests an RDMA device against the InfiniBand architecture and the manual pages of verbs and
 * rdma_cm. Uses only libibverbs and librdmacm, so it runs on any RoCE device.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define TEST_SECONDS 400

static const struct suite suites[] = {
	{"command", command_tests},
	{"device", device_tests},
	{"pd", pd_tests},
	{"mr", mr_tests},
	{"odp", odp_tests},
	{"mw", mw_tests},
	{"ah", ah_tests},
	{"cq", cq_tests},
	{"cq_event", cq_event_tests},
	{"srq", srq_tests},
	{"qp", qp_tests},
	{"qp_state", qp_state_tests},
	{"qp_rc", qp_rc_tests},
	{"qp_uc", qp_uc_tests},
	{"qp_ud", qp_ud_tests},
	{"mcast", mcast_tests},
	{"async", async_tests},
#ifdef HAVE_RDMACM
	{"cm_id", cm_id_tests},
	{"cm_event", cm_event_tests},
	{"cm_connect", cm_connect_tests},
	{"cm_endpoint", cm_endpoint_tests},
	{"cm_ud", cm_ud_tests},
	{"cm_socket", cm_socket_tests},
#endif
};

static void usage(FILE *out)
{
	fputs("usage: conformance [-d DEVICE] [-g GID_INDEX] [-a DRIVER] [-m MANY] [-p] [-w] [-l] "
	      "[TEST...]\n"
	      "  -d  the device's name; the first one there is\n"
	      "  -g  index of the GID to send from; the first RoCEv2 one that is not link-local\n"
	      "  -a  whose known deviations are expected; the device's name without its number\n"
	      "  -m  how many objects of a kind are made at most; 65536\n"
	      "  -p  the driver may lack UC, ibv_wr_*, extended CQs, ibv_resize_cq, multicast\n"
	      "  -w  the device has all that there are tests of: what it lacks is a failure\n"
	      "  -l  lists the tests\n"
	      "TEST is OBJECT/NAME, OBJECT, or a pattern; all where there is none\n",
	      out);
}

static bool is_chosen(const char *object, const char *test, char **patterns, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(patterns[i], object) || !fnmatch(patterns[i], test, 0))
			return true;
	return !n;
}

/* Each test is a process of its own, so a failed test cannot disturb the next ones. */
static int run_test(const char *driver, const char *name, const struct test *test)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		return EXIT_FAILURE;
	if (!child) {
		alarm(TEST_SECONDS);
		rule_begin(driver, name);
		hca_open();
		test->run();
		exit(rule_end() ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILURE;
	if (WIFSIGNALED(status))
		printf("%s: %s\n", name, strsignal(WTERMSIG(status)));
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

struct tally {
	int run, failed, skipped;
};

static void run_suite(const struct suite *suite, const char *driver, char **patterns, int n,
		      bool list, bool whole, struct tally *tally)
{
	char name[128];

	for (const struct test *test = suite->tests; test->name; test++) {
		snprintf(name, sizeof(name), "%s/%s", suite->object, test->name);
		if (!is_chosen(suite->object, name, patterns, n))
			continue;
		tally->run++;
		if (list) {
			puts(name);
			continue;
		}
		switch (run_test(driver, name, test)) {
		case EXIT_SUCCESS: break;
		case EXIT_SKIPPED: tally->skipped++; break;
		case EXIT_LACKING: ++*(whole ? &tally->failed : &tally->skipped); break;
		default: tally->failed++; break;
		}
	}
}

/* The driver in a device's name: "rxe" of rxe0, "mlx5" of mlx5_0. */
static const char *driver_of(const char *device)
{
	static char driver[64];
	size_t length;

	snprintf(driver, sizeof(driver), "%s", device);
	length = strlen(driver);
	while (length && strchr("0123456789", driver[length - 1]))
		length--;
	while (length && driver[length - 1] == '_')
		length--;
	driver[length] = '\0';
	return driver;
}

/* Raises the limits of the process, so that tests reach the limits of the device. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	const char *driver = NULL;
	struct tally tally = {0};
	bool list = false, whole = false;
	int option;

	while ((option = getopt(argc, argv, "d:g:a:m:pwlh")) != -1) {
		switch (option) {
		case 'd': hca.name = optarg; break;
		case 'g': hca.gid_index = atoi(optarg); break;
		case 'a': driver = optarg; break;
		case 'm': hca.many = atoi(optarg); break;
		case 'p': hca.partial = true; break;
		case 'w': whole = true; break;
		case 'l': list = true; break;
		case 'h': usage(stdout); return EXIT_SUCCESS;
		default: usage(stderr); return 2;
		}
	}
	if (!list && !hca_find(hca.name)) {
		fprintf(stderr, "conformance: there is no device %s\n",
			hca.name ? hca.name : "at all");
		return EXIT_FAILURE;
	}
	if (!list && !driver)
		driver = driver_of(ibv_get_device_name(hca_find(hca.name)));
	raise_limits();
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		run_suite(&suites[i], driver, argv + optind, argc - optind, list, whole, &tally);
	if (!list)
		printf("%d tests, %d failed, %d skipped\n", tally.run, tally.failed, tally.skipped);
	return tally.run && !tally.failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
