/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "two.h"

#include <err.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double bench_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "cannot run on CPU %d", cpu);
}

pid_t bench_child(const struct bench_cpus *cpus, void (*body)(void *argument), void *argument)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		err(1, "fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	bench_pin(cpus->other);
	body(argument);
	_exit(0);
}

void bench_end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
