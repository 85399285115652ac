/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "threads.h"

#include <stdatomic.h>
#include <sys/stat.h>

/* Links of a directory, besides one for each of its directories. */
#define LINKS 2

/* Never more than there are: one that is about to end is not counted any more. */
static atomic_uint ours;

void threads_created(void)
{
	atomic_fetch_add(&ours, 1);
}

void threads_ending(void)
{
	atomic_fetch_sub(&ours, 1);
}

void threads_in_child(void)
{
	atomic_store(&ours, 0);
}

bool threads_alone(void)
{
	struct stat tasks;

	return !stat("/proc/self/task", &tasks) && tasks.st_nlink == LINKS + 1 + atomic_load(&ours);
}
