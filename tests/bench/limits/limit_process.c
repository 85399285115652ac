/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits of the kernel between two processes: a copy between their memories, and a wake-up.
 */
#include "lib/laps.h"
#include "lib/pace.h"
#include "lib/silence.h"
#include "limits.h"

#include <err.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS      UINT64_C(100000)
#define COPIED     (UINT64_C(1) << 30) /* bytes for one figure, unless CALLS calls copy fewer */
#define WAKINGS    5000
#define WAKING_LAP 10

typedef ssize_t transfer_fn(pid_t pid, const struct iovec *local, unsigned long n_local,
			    const struct iovec *remote, unsigned long n_remote,
			    unsigned long flags);

/* Forks a sleeping process, whose memory at the same address has pages of its own. */
static pid_t sleeper(const struct iovec *memory)
{
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(memory->iov_base, 0xa5, memory->iov_len);
	raise(SIGSTOP);
	_exit(0);
}

/* Seconds for a call: the median of laps of `lap` calls. */
static double transfer(size_t size, uint64_t calls, uint64_t lap, transfer_fn *move)
{
	struct iovec memory = {limit_buffer(size), size};
	struct laps laps;
	pid_t child;

	child = sleeper(&memory);
	waitpid(child, NULL, WUNTRACED);
	laps_start(&laps);
	for (uint64_t i = 1; i <= calls; i++) {
		if (move(child, &memory, 1, &memory, 1, 0) != (ssize_t)size)
			err(1, "another process's memory");
		if (i % lap == 0)
			laps_mark(&laps);
	}
	bench_end(child);
	free(memory.iov_base);
	return laps_median(&laps) / (double)lap;
}

double limit_vm_write(const struct bench_cpus *cpus, size_t size)
{
	(void)cpus;
	return transfer(size, CALLS, CALLS / LAPS_MAX, process_vm_writev);
}

double limit_vm_read(const struct bench_cpus *cpus, size_t size)
{
	const uint64_t calls = COPIED / size < CALLS ? COPIED / size : CALLS;

	(void)cpus;
	/* One lap: perftest's bandwidth is an average, too. */
	return (double)size / transfer(size, calls, calls, process_vm_readv);
}

static void pass(int from, int to)
{
	eventfd_t value;

	if (eventfd_read(from, &value) || eventfd_write(to, 1))
		err(1, "eventfd");
}

static void pass_back(void *argument)
{
	const int *fds = argument;

	for (;;)
		pass(fds[0], fds[1]);
}

double limit_wakeup(const struct bench_cpus *cpus, size_t size)
{
	int fds[2] = {eventfd(0, 0), eventfd(0, 0)};
	struct laps laps;
	pid_t child;

	(void)size;
	if (fds[0] < 0 || fds[1] < 0)
		err(1, "eventfd");
	child = bench_child(cpus, pass_back, fds);
	laps_start(&laps);
	eventfd_write(fds[0], 1);
	for (int i = 1; i < WAKINGS; i++) {
		pass(fds[1], fds[0]);
		if (i % WAKING_LAP == 0)
			laps_mark(&laps);
	}
	bench_end(child);
	close(fds[0]);
	close(fds[1]);
	return laps_median(&laps) / WAKING_LAP / 2;
}

struct knocking {
	struct silence *silence;
	int fd;
};

static void knock(void *argument)
{
	const struct knocking *knocking = argument;

	for (int i = 0; i < SILENCE_MESSAGES; i++) {
		silence_keep(knocking->silence);
		silence_end(knocking->silence);
		if (eventfd_write(knocking->fd, 1))
			err(1, "eventfd");
	}
	pause();
}

double limit_wakeup_silent(const struct bench_cpus *cpus, size_t size)
{
	struct knocking knocking = {silence_create(), eventfd(0, 0)};
	eventfd_t value;
	struct laps laps;
	pid_t child;

	(void)size;
	if (knocking.fd < 0)
		err(1, "eventfd");
	child = bench_child(cpus, knock, &knocking);
	laps_start(&laps);
	for (int i = 0; i < SILENCE_MESSAGES; i++) {
		if (eventfd_read(knocking.fd, &value))
			err(1, "eventfd");
		silence_heard(knocking.silence, &laps);
	}
	bench_end(child);
	close(knocking.fd);
	return laps_median(&laps);
}

struct paced {
	struct pace *pace;
	int fd;
};

static void listen_at_pace(void *argument)
{
	const struct paced *paced = argument;
	eventfd_t value;

	for (;;) {
		if (eventfd_read(paced->fd, &value))
			err(1, "eventfd");
		pace_hear(paced->pace);
	}
}

double limit_paced(const struct bench_cpus *cpus, size_t microseconds)
{
	struct paced paced = {pace_create((double)microseconds * 1e-6), eventfd(0, 0)};
	pid_t child;

	if (paced.fd < 0)
		err(1, "eventfd");
	child = bench_child(cpus, listen_at_pace, &paced);
	for (int i = 0; i < PACE_MESSAGES; i++) {
		pace_wait(paced.pace);
		pace_send(paced.pace);
		if (eventfd_write(paced.fd, 1))
			err(1, "eventfd");
	}
	pace_wait(paced.pace);
	bench_end(child);
	close(paced.fd);
	return pace_share(paced.pace);
}
