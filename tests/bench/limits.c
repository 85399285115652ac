/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * limits CPU CPU NAME[:SIZE]... prints JSON: each limit's figure by the name given, a time
 * in seconds or a bandwidth in bytes per second.
 */
#include "limits.h"

#include <err.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct limit {
	const char *name;
	double (*measure)(const struct limits_cpus *cpus, size_t size);
} limits[] = {
	{"bounce", limit_bounce},     {"ring", limit_ring},         {"tcp", limit_tcp},
	{"wakeup", limit_wakeup},     {"vm_write", limit_vm_write}, {"memcpy", limit_memcpy},
	{"copy_crc", limit_copy_crc}, {"vm_read", limit_vm_read},
};

double limits_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void limits_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "cannot run on CPU %d", cpu);
}

pid_t limits_child(const struct limits_cpus *cpus, void (*body)(void *argument), void *argument)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		err(1, "fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	limits_pin(cpus->other);
	body(argument);
	_exit(0);
}

void limits_end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static const struct limit *find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (strlen(limits[i].name) == len && !memcmp(limits[i].name, name, len))
			return &limits[i];
	errx(2, "no limit '%.*s'", (int)len, name);
}

int main(int argc, char **argv)
{
	struct limits_cpus cpus;

	if (argc < 4)
		errx(2, "usage: limits CPU CPU NAME[:SIZE]...");
	cpus = (struct limits_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	limits_pin(cpus.own);
	for (int i = 3; i < argc; i++) {
		size_t len = strcspn(argv[i], ":");
		size_t size = argv[i][len] ? strtoul(argv[i] + len + 1, NULL, 10) : 0;

		printf("%s\"%s\": %.6g", i == 3 ? "{" : ", ", argv[i],
		       find(argv[i], len)->measure(&cpus, size));
	}
	puts("}");
	return 0;
}
