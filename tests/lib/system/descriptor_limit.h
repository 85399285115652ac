/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_TEST_DESCRIPTOR_LIMIT_H
#define URXE_TEST_DESCRIPTOR_LIMIT_H

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "require.h"

/* Makes each system call that needs a new descriptor fail with EMFILE. Returns the former limit. */
static inline struct rlimit descriptor_limit_reach(void)
{
	struct rlimit former, reached;
	const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

	require(lowest >= 0 && !close(lowest) && !getrlimit(RLIMIT_NOFILE, &former));
	reached = former;
	reached.rlim_cur = (rlim_t)lowest;
	require(!setrlimit(RLIMIT_NOFILE, &reached));
	return former;
}

static inline void descriptor_limit_restore(const struct rlimit *former)
{
	require(!setrlimit(RLIMIT_NOFILE, former));
}

#endif
