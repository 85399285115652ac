/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "session/sched_slice.h"

/* Without <sched.h>, which defines the same structures. */
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000

void sched_request_short_slice(void)
{
	struct sched_attr attr = {.size = sizeof(attr),
				  .sched_policy = SCHED_NORMAL,
				  .sched_nice = getpriority(PRIO_PROCESS, 0),
				  .sched_runtime = SLICE_NS};

	/* Leaves a thread with another policy, which the user has chosen (chrt), as it is. */
	if (syscall(SYS_sched_getscheduler, 0) != SCHED_NORMAL)
		return;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}
