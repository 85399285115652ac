/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which processes --direct-uplink trusts with raw frames. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "urxed/uplink/direct_uplink_trust.h"

static struct direct_uplink_trust trust;
static char error[DIRECT_UPLINK_ERROR];

static int add(const char *name)
{
	return direct_uplink_trust_add(&trust, name, error);
}

static int clear(void **state)
{
	(void)state;
	trust = (struct direct_uplink_trust){0};
	return 0;
}

static void names_of_users_and_groups_are_resolved(void **state)
{
	(void)state;
	assert_int_equal(add("daemon"), 0);
	assert_int_equal(add("@root"), 0);
	assert_int_equal(trust.named.n_users, 1);
	assert_int_equal(trust.named.n_groups, 1);
	assert_int_not_equal(trust.named.users[0], 0);
	assert_int_equal(trust.named.groups[0], 0);
}

static void unknown_names_are_refused(void **state)
{
	(void)state;
	assert_int_equal(add("no-such-user"), -EINVAL);
	assert_string_equal(error, "direct-uplink no-such-user: no such user (@NAME is a group)");
	assert_int_equal(add("@no-such-group"), -EINVAL);
	assert_string_equal(error, "direct-uplink @no-such-group: no such group");
	assert_int_equal(add("@"), -EINVAL);
}

static void none_excludes_all_other_values(void **state)
{
	(void)state;
	assert_int_equal(add("none"), 0);
	assert_int_equal(add("none"), 0);
	assert_int_equal(add("daemon"), -EINVAL);
	assert_string_equal(error, "direct-uplink daemon: \"none\" excludes all other values");
	clear(NULL);
	assert_int_equal(add("daemon"), 0);
	assert_int_equal(add("none"), -EINVAL);
}

static void numbers_of_names_are_limited(void **state)
{
	(void)state;
	for (int i = 0; i < USER_LIST_NAMES; i++) {
		assert_int_equal(add("daemon"), 0);
		assert_int_equal(add("@root"), 0);
	}
	assert_int_equal(add("daemon"), -ENOSPC);
	assert_int_equal(add("@root"), -ENOSPC);
}

/* The other end of the socket is this process. The kernel tells some users no namespace. */
static bool trusts_this_process(bool *asked)
{
	int ends[2], namespace;
	bool trusted;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	trusted = direct_uplink_trusts(&trust, ends[0]);
	namespace = ioctl(ends[0], SIOCGSKNS);
	*asked = namespace >= 0;
	close(namespace);
	close(ends[0]);
	close(ends[1]);
	return trusted;
}

static void the_daemon_s_own_user_is_trusted_unless_none_is(void **state)
{
	bool asked, trusted = trusts_this_process(&asked);

	(void)state;
	assert_int_equal(trusted, asked);
	assert_int_equal(add("none"), 0);
	assert_false(trusts_this_process(&asked));
}

/* Its root has no right to the frames of the daemon's interface. */
static void a_process_of_another_network_must_be_named(void **state)
{
	const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int ends[2];

	(void)state;
	if (unshare(CLONE_NEWNET))
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(setns(own, CLONE_NEWNET), 0);
	assert_false(direct_uplink_trusts(&trust, ends[0]));
	trust.named.users[trust.named.n_users++] = getuid();
	assert_true(direct_uplink_trusts(&trust, ends[0]));
	close(ends[0]);
	close(ends[1]);
	close(own);
}

#define OTHER_USER  65534
#define OTHER_GROUP 65533
#define ITS_GROUP   65532 /* supplementary */

/* Like a connection of a process of that user; the kernel records the user and the groups now. */
static void open_as_other_user(int ends[2])
{
	const gid_t its_group = ITS_GROUP;
	gid_t own[64];
	int n = getgroups(64, own);

	assert_in_range(n, 0, 64);
	assert_int_equal(setgroups(1, &its_group) | setegid(OTHER_GROUP) | seteuid(OTHER_USER), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(seteuid(0) | setegid(0) | setgroups((size_t)n, own), 0);
}

static bool trusts_other_user(void)
{
	int ends[2];
	bool trusted;

	open_as_other_user(ends);
	trusted = direct_uplink_trusts(&trust, ends[0]);
	close(ends[0]);
	close(ends[1]);
	return trusted;
}

/* Only root can change its user, and urxed's system call filter forbids it, too. */
static void skip_if_user_is_fixed(void)
{
	if (seteuid(OTHER_USER))
		skip();
	assert_int_equal(seteuid(0), 0);
}

static void another_user_must_be_named(void **state)
{
	(void)state;
	skip_if_user_is_fixed();
	assert_false(trusts_other_user());
	trust.named.users[trust.named.n_users++] = OTHER_USER - 10;
	assert_false(trusts_other_user());
	trust.named.users[trust.named.n_users++] = OTHER_USER;
	assert_true(trusts_other_user());
}

static void each_group_of_a_process_can_be_named(void **state)
{
	const gid_t groups[] = {OTHER_GROUP, ITS_GROUP};

	(void)state;
	skip_if_user_is_fixed();
	trust.named.groups[trust.named.n_groups++] = ITS_GROUP - 10;
	assert_false(trusts_other_user());
	for (int i = 0; i < 2; i++) {
		trust.named.groups[0] = groups[i];
		assert_true(trusts_other_user());
	}
}

static void a_socket_without_a_peer_is_not_trusted(void **state)
{
	(void)state;
	assert_false(direct_uplink_trusts(&trust, -1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(names_of_users_and_groups_are_resolved, clear),
		cmocka_unit_test_setup(unknown_names_are_refused, clear),
		cmocka_unit_test_setup(none_excludes_all_other_values, clear),
		cmocka_unit_test_setup(numbers_of_names_are_limited, clear),
		cmocka_unit_test_setup(the_daemon_s_own_user_is_trusted_unless_none_is, clear),
		cmocka_unit_test_setup(a_process_of_another_network_must_be_named, clear),
		cmocka_unit_test_setup(another_user_must_be_named, clear),
		cmocka_unit_test_setup(each_group_of_a_process_can_be_named, clear),
		cmocka_unit_test_setup(a_socket_without_a_peer_is_not_trusted, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
