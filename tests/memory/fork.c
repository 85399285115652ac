/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Children created by each system call of Linux, while memory of the parent is registered. */
#include "fork.h"

#include <err.h>
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "region.h"
#include "row.h"
#include "snapshot.h"

#define THREADS       4
#define HANDLER_FORKS 20

extern char **environ;

/* --- Calls that copy the memory */

static void fork_plain(uintptr_t size)
{
	struct region region = region_map(size);

	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

/* Programs ask libibverbs to keep registered pages for the parent, or to say that Linux copies
 * them. */
static void fork_after_fork_init(uintptr_t size)
{
	struct region region;

	say("ibv_fork_init: %s", strerror(ibv_fork_init()));
	region = region_map(size);
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void fork_clone(uintptr_t size)
{
	struct region region = region_map(size);

	snapshot_check(&region, raw_clone);
	region_unmap(&region);
}

static pid_t raw_clone3(void)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* The call without arguments fails in any case. */
static bool has_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0) >= 0 || errno != ENOSYS;
}

static void fork_clone3(uintptr_t size)
{
	struct region region = region_map(size);

	skip_unless(has_clone3(), "clone3");
	snapshot_check(&region, raw_clone3);
	region_unmap(&region);
}

/* --- With threads */

static atomic_bool ended;

static void *allocate_and_poll(void *unused)
{
	while (!ended) {
		free(calloc(1, 3000));
		region_poll();
	}
	return unused;
}

static void start_threads(pthread_t *threads)
{
	ended = false;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, allocate_and_poll, NULL))
			errx(1, "pthread_create");
}

static void end_threads(pthread_t *threads)
{
	ended = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* The threads must end before the peer's next traffic, because they would poll its completions. */
static pid_t fork_among_threads(void)
{
	pthread_t threads[THREADS];
	pid_t child;

	start_threads(threads);
	child = fork();
	if (child)
		end_threads(threads);
	return child;
}

static void fork_threads(uintptr_t size)
{
	struct region region = region_map(size);

	snapshot_check(&region, fork_among_threads);
	region_unmap(&region);
}

/* --- From a signal handler */

static volatile pid_t child_of_handler;

static void fork_in_handler(int number)
{
	(void)number;
	child_of_handler = fork();
}

static void set_handler(int number, void (*handler)(int))
{
	const struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

	if (sigaction(number, &act, NULL))
		err(1, "sigaction");
}

static pid_t raise_and_fork(void)
{
	child_of_handler = -1;
	set_handler(SIGUSR1, fork_in_handler);
	raise(SIGUSR1);
	return child_of_handler;
}

static void fork_handler(uintptr_t size)
{
	struct region region = region_map(size);

	snapshot_check(&region, raise_and_fork);
	region_unmap(&region);
}

/* The handler returns in parent and child, into the poll that the signal interrupted. */
static pid_t fork_while_polling(void)
{
	const struct itimerval soon = {.it_value.tv_usec = 500 + rand() % 500}, never = {0};

	child_of_handler = -1;
	set_handler(SIGALRM, fork_in_handler);
	setitimer(ITIMER_REAL, &soon, NULL);
	while (child_of_handler == -1)
		region_poll();
	setitimer(ITIMER_REAL, &never, NULL);
	return child_of_handler;
}

static void fork_handler_poll(uintptr_t size)
{
	struct region region = region_map(size);

	for (int i = 0; i < (size > MIB ? 1 : 4); i++)
		snapshot_check(&region, fork_while_polling);
	region_unmap(&region);
}

static volatile int handler_forks;

/*
 * Forks no more once it has forked often enough: on a busy machine a fork takes longer than the
 * timer's interval, and the interrupted poll would never go on.
 */
static void fork_and_leave(int number)
{
	pid_t child;

	(void)number;
	if (handler_forks >= HANDLER_FORKS)
		return;
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	handler_forks++;
}

/* The child ends in the handler. Several threads poll, and the signal interrupts one of them. */
static void fork_handler_threads(uintptr_t size)
{
	const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0}};
	struct region region = region_map(size);
	pthread_t threads[THREADS];

	region_fill(&region, 1);
	handler_forks = 0;
	set_handler(SIGALRM, fork_and_leave);
	start_threads(threads);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handler_forks < HANDLER_FORKS)
		region_poll();
	setitimer(ITIMER_REAL, &never, NULL);
	end_threads(threads);
	say("the handler forked often enough");
	say("the memory is the same: %s", region_says(&region, 1));
	region_fill(&region, 2);
	say("the peer writes after the forks: %s", region_says(&region, 2));
	region_unmap(&region);
}

/* --- Calls that share the memory until the child executes a program */

static void say_ended(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		err(1, "waitpid");
	say("the child ended with status %#x", (unsigned int)status);
}

static void say_untouched(struct region *region)
{
	say("the memory is the same: %s", region_says(region, 5));
	region_fill(region, 6);
	say("the peer writes after the child: %s", region_says(region, 6));
}

static void check_vfork(struct region *region)
{
	static char *const argv[] = {"true", NULL};
	pid_t child;

	region_fill(region, 5);
	child = vfork();
	if (!child) {
		execv("/bin/true", argv);
		_exit(127);
	}
	say_ended(child);
	say_untouched(region);
}

static void fork_vfork(uintptr_t size)
{
	struct region region = region_map(size);

	check_vfork(&region);
	region_unmap(&region);
}

static void check_posix_spawn(struct region *region)
{
	static char *const argv[] = {"true", NULL};
	pid_t child;

	region_fill(region, 5);
	errno = posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ);
	if (errno)
		err(1, "posix_spawn");
	say_ended(child);
	say_untouched(region);
}

static void fork_posix_spawn(uintptr_t size)
{
	struct region region = region_map(size);

	check_posix_spawn(&region);
	region_unmap(&region);
}

/* A vfork child runs in the parent's memory, so its stores remain. */
static void check_vfork_store(struct region *region)
{
	volatile uint8_t *byte = region->bytes + region->size - 1;
	pid_t child;

	region_fill(region, 5);
	child = vfork();
	if (!child) {
		*byte = 0xee;
		_exit(0);
	}
	say_ended(child);
	say("the parent sees the child's store: %s", *byte == 0xee ? "yes" : "no");
}

static void fork_vfork_store(uintptr_t size)
{
	struct region region = region_map(size);

	check_vfork_store(&region);
	region_unmap(&region);
}

/* --- Each way, for the other themes */

const struct fork_way fork_ways[] = {
	{"fork", snapshot_fork},
	{"fork among threads", fork_among_threads},
	{"fork in a signal handler", raise_and_fork},
	{"fork in a signal handler that interrupts a poll", fork_while_polling},
	{"clone", raw_clone},
	{"clone3", raw_clone3},
	{0},
};

bool fork_way_works(const struct fork_way *way)
{
	if (way->make_child != raw_clone3 || has_clone3())
		return true;
	say("clone3: %s", strerror(errno));
	return false;
}

void fork_each_way(struct region *region)
{
	for (const struct fork_way *way = fork_ways; way->name; way++) {
		if (!fork_way_works(way))
			continue;
		say("%s:", way->name);
		snapshot_check_forks(region, way->make_child, 1);
	}
	say("vfork and exec:");
	check_vfork(region);
	say("vfork and a store:");
	check_vfork_store(region);
	say("posix_spawn:");
	check_posix_spawn(region);
}

/* --- Rows */

#define SIZES(name, run)                                        \
	{name "_1_page", run, PAGE}, {name "_1_mib", run, MIB}, \
	{                                                       \
		name "_64_mib", run, 64 * MIB                   \
	}

const struct row fork_rows[] = {
	SIZES("plain", fork_plain),
	{"after_fork_init", fork_after_fork_init, MIB},
	SIZES("threads", fork_threads),
	SIZES("signal_handler", fork_handler),
	SIZES("signal_handler_while_polling", fork_handler_poll),
	SIZES("signal_handler_among_pollers", fork_handler_threads),
	SIZES("vfork_exec", fork_vfork),
	SIZES("vfork_store", fork_vfork_store),
	SIZES("posix_spawn", fork_posix_spawn),
	SIZES("clone", fork_clone),
	SIZES("clone3", fork_clone3),
	{0},
};
