/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a program as if on Linux before 6.16, which has no SO_PASSRIGHTS:
 *
 *   old_kernel PROGRAM [ARGUMENT]...
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <seccomp.h>

#include "require.h"

#define PASSRIGHTS 83 /* SO_PASSRIGHTS */

static void hide_option(scmp_filter_ctx filter, int call)
{
	require(!seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOPROTOOPT), call, 2,
				  SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
				  SCMP_A2(SCMP_CMP_EQ, PASSRIGHTS)));
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	require(argc > 1 && filter);
	hide_option(filter, SCMP_SYS(setsockopt));
	hide_option(filter, SCMP_SYS(getsockopt));
	require(!seccomp_load(filter));
	seccomp_release(filter);
	execvp(argv[1], argv + 1);
	return 127;
}
