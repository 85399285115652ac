/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The numbers that the program's own open() returns, beside the descriptors of a device. */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region.h"
#include "row.h"

static int open_number(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "open");
	close(fd);
	return fd;
}

/* Of the device, the program has the two descriptors in struct ibv_context. */
static void say_skipped(const char *where)
{
	say("%s: open() skips %d numbers", where,
	    open_number() - region_first_number() - region_descriptors());
}

static void after_open(uintptr_t unused)
{
	(void)unused;
	say_skipped("after the device was opened");
}

static void after_traffic(uintptr_t unused)
{
	struct region region = region_map(MIB);

	(void)unused;
	region_fill(&region, 1);
	region_write_to_peer(&region);
	say_skipped("after messages");
	region_unmap(&region);
	say_skipped("after the region's end");
}

static void limit_numbers(rlim_t most)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		err(1, "getrlimit");
	limit.rlim_cur = most;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "setrlimit");
}

/* The program gets all numbers below the limit but its own, and messages go on. */
static void lower_limit(uintptr_t most)
{
	struct region region = region_map(MIB);
	int number, last = -1;

	limit_numbers(most);
	region_fill(&region, 2);
	say_skipped("with a lower limit");
	while ((number = dup(0)) >= 0)
		last = number;
	say("the last number is %d", last);
	region_fill(&region, 3);
	say("the memory has the bytes: %s", region_says(&region, 3));
	while (last > region_first_number() + region_descriptors())
		close(last--);
	region_unmap(&region);
}

/* The library opens descriptors below the limit. */
static void open_below_limit(uintptr_t most)
{
	struct region region = region_map(MIB);

	limit_numbers(most);
	region_open_channel();
	say_skipped("after a channel below the limit");
	region_fill(&region, 4);
	say("the memory has the bytes: %s", region_says(&region, 4));
	region_unmap(&region);
}

static void in_child(uintptr_t unused)
{
	const pid_t child = fork();

	(void)unused;
	if (child < 0)
		err(1, "fork");
	if (!child) {
		say_skipped("in a child");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	say_skipped("after fork");
}

/* All descriptors of an executed program, of any kind: the library's are closed. */
static void after_exec(uintptr_t unused)
{
	(void)unused;
	say("the status of ls is %d",
	    system("ls -l /proc/self/fd | sed -n 's/.* -> //; s/[0-9].*//p' | sort"));
}

const struct row descriptor_rows[] = {
	{"open", after_open, 0},
	{"traffic", after_traffic, 0},
	{"limit", lower_limit, 64},
	{"below", open_below_limit, 64},
	{"child", in_child, 0},
	{"exec", after_exec, 0},
	{NULL, NULL, 0},
};
