/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A program that takes itself for root's, as under fakeroot, opens the device and rdma_cm of a
 * daemon of its real user. */
#include <err.h>
#include <fcntl.h>
#include <unistd.h>

#include "loop.h"

/* In place of libc's, also for libraries. */
uid_t geteuid(void)
{
	return 0;
}

int main(void)
{
	loop_open();
	if (open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC) < 0)
		err(1, "rdma_cm");
	return 0;
}
