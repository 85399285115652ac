/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hooks CPU CALL prints the seconds of a libc call in a program without verbs, as the fastest of
 * many batches on that CPU. The caller runs it with and without the preloaded library.
 */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 40
#define CALLS   200
#define PAGE    4096

static int null, spare, ends[2], epoll;
static int fds[CALLS];
static void *pages[CALLS];

static void require(int done, const char *what)
{
	if (!done)
		err(1, "%s", what);
}

static void open_files(void)
{
	struct epoll_event event = {.events = EPOLLIN};

	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	spare = open("/dev/null", O_RDWR | O_CLOEXEC);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	require(null >= 0 && spare >= 0 && epoll >= 0 && !pipe2(ends, O_CLOEXEC) &&
			!epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event),
		"files");
}

static void call_read(int i)
{
	(void)i;
	require(read(null, (char[1]){0}, 1) == 0, "read");
}

static void call_write(int i)
{
	(void)i;
	require(write(null, "", 1) == 1, "write");
}

static void call_poll(int i)
{
	struct pollfd pfd = {ends[0], POLLIN, 0};

	(void)i;
	require(poll(&pfd, 1, 0) == 0, "poll");
}

static void call_epoll_wait(int i)
{
	struct epoll_event event;

	(void)i;
	require(epoll_wait(epoll, &event, 1, 0) == 0, "epoll_wait");
}

static void call_ioctl(int i)
{
	int n;

	(void)i;
	require(ioctl(ends[0], FIONREAD, &n) == 0, "ioctl");
}

static void call_fcntl(int i)
{
	(void)i;
	require(fcntl(null, F_GETFD) == FD_CLOEXEC, "fcntl");
}

static void call_sigaction(int i)
{
	const struct sigaction act = {.sa_handler = SIG_IGN};

	(void)i;
	require(sigaction(SIGUSR1, &act, NULL) == 0, "sigaction");
}

static void call_stat(int i)
{
	struct stat st;

	(void)i;
	require(stat("/", &st) == 0, "stat");
}

static void call_fstat(int i)
{
	struct stat st;

	(void)i;
	require(fstat(null, &st) == 0, "fstat");
}

static void call_dup2(int i)
{
	(void)i;
	require(dup2(null, spare) == spare, "dup2");
}

static void call_dup(int i)
{
	fds[i] = dup(null);
	require(fds[i] >= 0, "dup");
}

static void call_open(int i)
{
	fds[i] = open("/", O_RDONLY | O_CLOEXEC);
	require(fds[i] >= 0, "open");
}

static void call_close(int i)
{
	require(close(fds[i]) == 0, "close");
}

static void call_mmap(int i)
{
	pages[i] = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(pages[i] != MAP_FAILED, "mmap");
}

static void call_munmap(int i)
{
	require(munmap(pages[i], PAGE) == 0, "munmap");
}

static void call_exec(int i)
{
	pid_t child = fork();
	int status;

	(void)i;
	if (!child) {
		execl("/proc/self/exe", "hooks", NULL);
		_exit(1);
	}
	require(waitpid(child, &status, 0) == child && !status, "fork, exec");
}

static const struct call {
	const char *name;
	void (*before)(int i); /* prepares a call, outside of the measured time */
	void (*call)(int i);
	void (*after)(int i);
	int calls; /* in a batch; 0 = CALLS */
} calls[] = {
	{"read", NULL, call_read, NULL, 0},
	{"write", NULL, call_write, NULL, 0},
	{"poll", NULL, call_poll, NULL, 0},
	{"epoll_wait", NULL, call_epoll_wait, NULL, 0},
	{"ioctl", NULL, call_ioctl, NULL, 0},
	{"fcntl", NULL, call_fcntl, NULL, 0},
	{"sigaction", NULL, call_sigaction, NULL, 0},
	{"stat", NULL, call_stat, NULL, 0},
	{"fstat", NULL, call_fstat, NULL, 0},
	{"open", NULL, call_open, call_close, 0},
	{"close", call_dup, call_close, NULL, 0},
	{"dup", NULL, call_dup, call_close, 0},
	{"dup2", NULL, call_dup2, NULL, 0},
	{"mmap", NULL, call_mmap, call_munmap, 0},
	{"munmap", call_mmap, call_munmap, NULL, 0},
	{"fork, exec, exit", NULL, call_exec, NULL, 1},
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double batch(const struct call *c)
{
	int n = c->calls ? c->calls : CALLS;
	double took;

	for (int i = 0; c->before && i < n; i++)
		c->before(i);
	took = now();
	for (int i = 0; i < n; i++)
		c->call(i);
	took = now() - took;
	for (int i = 0; c->after && i < n; i++)
		c->after(i);
	return took / n;
}

static void measure(const struct call *c)
{
	double least = batch(c);

	for (int i = 1; i < BATCHES; i++) {
		double took = batch(c);

		least = took < least ? took : least;
	}
	printf("%.12f\n", least);
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;

	if (argc == 1) /* what exec runs */
		return 0;
	if (argc != 3)
		errx(2, "usage: hooks CPU CALL");
	CPU_ZERO(&cpus);
	CPU_SET((size_t)atoi(argv[1]), &cpus);
	require(!sched_setaffinity(0, sizeof(cpus), &cpus), "the processor");
	/* If permitted, so that other programs do not interrupt the measurement. */
	setpriority(PRIO_PROCESS, 0, -20);
	open_files();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, argv[2])) {
			measure(&calls[i]);
			return 0;
		}
	errx(2, "no call %s", argv[2]);
}
