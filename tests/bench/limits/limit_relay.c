/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The limit of a message from a program by two daemons to another program, when all four processes
 * share two CPUs: both programs spin on shared memory, each on its CPU, and the daemons sleep until
 * an eventfd wakes them. A daemon passes the token on and does nothing else. The scheduler places
 * the daemons, or each stays on the CPU of its program.
 */
#include "lib/laps.h"
#include "limits.h"

#include <err.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <session/sched_slice.h>

#define MESSAGES 10000
#define LAP      10
#define WARM_UP  100

/* Events of a daemon's epoll set. */
enum { FROM_PROGRAM, FROM_DAEMON, SOURCES };

struct daemon {
	_Alignas(64) atomic_uint received; /* tokens; the program spins on it */
	int bells[SOURCES];
	struct daemon *peer;
};

struct relay {
	struct daemon daemons[2];
	const struct bench_cpus *cpus;
	bool apart; /* each daemon stays on the CPU of its program */
};

static void ring(int bell)
{
	if (eventfd_write(bell, 1))
		err(1, "eventfd");
}

static int watch_bells(const struct daemon *daemon)
{
	int set = epoll_create1(0);

	for (uint32_t i = 0; i < SOURCES; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};

		if (epoll_ctl(set, EPOLL_CTL_ADD, daemon->bells[i], &event))
			err(1, "epoll");
	}
	return set;
}

static void pass_on(struct daemon *daemon, uint32_t source)
{
	eventfd_t value;

	if (eventfd_read(daemon->bells[source], &value))
		err(1, "eventfd");
	if (source == FROM_PROGRAM)
		ring(daemon->peer->bells[FROM_DAEMON]);
	else
		atomic_fetch_add_explicit(&daemon->received, 1, memory_order_release);
}

/* urxed is not pinned either. */
static void run_on_both(const struct bench_cpus *cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus->own, &set);
	CPU_SET(cpus->other, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "cannot run on two CPUs");
}

static void run_daemon(struct relay *relay, uint32_t index)
{
	struct daemon *daemon = &relay->daemons[index];
	struct epoll_event events[SOURCES];
	int set = watch_bells(daemon), n;

	if (relay->apart)
		bench_pin(index ? relay->cpus->other : relay->cpus->own);
	else
		run_on_both(relay->cpus);
	sched_request_short_slice(); /* as urxed does */
	while ((n = epoll_wait(set, events, SOURCES, -1)) >= 0)
		for (int i = 0; i < n; i++)
			pass_on(daemon, events[i].data.u32);
	err(1, "epoll");
}

static void run_first(void *relay)
{
	run_daemon(relay, 0);
}

static void run_second(void *relay)
{
	run_daemon(relay, 1);
}

static void wait_for_token(struct daemon *daemon, unsigned int *seen)
{
	while (atomic_load_explicit(&daemon->received, memory_order_acquire) == *seen)
		;
	++*seen;
}

static void answer(void *argument)
{
	struct daemon *daemon = &((struct relay *)argument)->daemons[1];
	unsigned int seen = 0;

	for (;;) {
		wait_for_token(daemon, &seen);
		ring(daemon->bells[FROM_PROGRAM]);
	}
}

static void create(struct relay *relay, const struct bench_cpus *cpus, bool apart)
{
	relay->cpus = cpus;
	relay->apart = apart;
	for (int i = 0; i < 2; i++) {
		struct daemon *daemon = &relay->daemons[i];

		daemon->peer = &relay->daemons[!i];
		for (int source = 0; source < SOURCES; source++) {
			daemon->bells[source] = eventfd(0, EFD_NONBLOCK);
			if (daemon->bells[source] < 0)
				err(1, "eventfd");
		}
	}
}

static void ask(struct daemon *daemon, struct laps *laps)
{
	unsigned int seen = 0;

	for (int i = 1; i <= WARM_UP + MESSAGES; i++) {
		if (i == WARM_UP)
			laps_start(laps);
		ring(daemon->bells[FROM_PROGRAM]);
		wait_for_token(daemon, &seen);
		if (i > WARM_UP && i % LAP == 0)
			laps_mark(laps);
	}
}

static double measure(const struct bench_cpus *cpus, bool apart)
{
	struct relay *relay = mmap(NULL, sizeof(*relay), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t children[3];
	struct laps laps;

	if (relay == MAP_FAILED)
		err(1, "cannot share memory");
	create(relay, cpus, apart);
	children[0] = bench_child(cpus, run_first, relay);
	children[1] = bench_child(cpus, run_second, relay);
	children[2] = bench_child(cpus, answer, relay);
	ask(&relay->daemons[0], &laps);
	for (int i = 0; i < 3; i++)
		bench_end(children[i]);
	return laps_median(&laps) / LAP / 2;
}

double limit_relay(const struct bench_cpus *cpus, size_t size)
{
	(void)size;
	return measure(cpus, false);
}

double limit_relay_apart(const struct bench_cpus *cpus, size_t size)
{
	(void)size;
	return measure(cpus, true);
}
