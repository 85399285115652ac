/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One uplink has an interface of a network namespace until its process closes it or ends. */
#include "urxed/kernel/iface_claim.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char error[IFACE_CLAIM_ERROR];

static int claim(void)
{
	return iface_claim_open("lo", error);
}

static void expect_claimable(void)
{
	const int fd = claim();

	assert_true(fd >= 0);
	close(fd);
}

/* Each test has a network namespace of its own. */
static int setup(void **state)
{
	(void)state;
	return unshare(CLONE_NEWNET) ? -1 : 0;
}

static void an_interface_is_claimed_once(void **state)
{
	const int fd = claim();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(claim(), -EADDRINUSE);
	assert_string_equal(error, "cannot claim lo: Address already in use (another urxed has the "
				   "interface, or two uplinks name it)");
	close(fd);
	expect_claimable();
}

static void a_killed_process_leaves_no_claim(void **state)
{
	const pid_t parent = getpid(), child = fork();
	int status;

	(void)state;
	if (!child) {
		if (claim() < 0 || getppid() != parent)
			_exit(1);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	expect_claimable();
}

static void namespaces_have_interfaces_of_their_own(void **state)
{
	const int fd = claim();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	expect_claimable();
	close(fd);
}

static void a_missing_interface_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(iface_claim_open("eth0", error), -ENODEV);
	assert_string_equal(error, "cannot claim eth0: No such device");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_interface_is_claimed_once, setup),
		cmocka_unit_test_setup(a_killed_process_leaves_no_claim, setup),
		cmocka_unit_test_setup(namespaces_have_interfaces_of_their_own, setup),
		cmocka_unit_test_setup(a_missing_interface_is_an_error, setup),
	};

	/* Exit status 77 skips the test. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
