/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/fork_handlers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "process/libc_real.h"

/* Number of sets of handlers that this library may install. The last set is installed only at the
 * first opening of a device. */
#define SETS 4

static _Atomic(const struct fork_handlers *) users[FORK_USERS];
/* Number of sets of handlers that the library has wanted to install. Only the first SETS - 1 of
 * them are installed before the program first opens a device or rdma_cm. */
static atomic_uint wanted;
/* The number of the set that acts, from 1; 0: none before the first opening. Until then the
 * handlers write to no memory: the page faults after fork would make each fork 0.06 ms longer. */
static atomic_uint acting;

static void before_fork(unsigned int set)
{
	const struct fork_handlers *user;

	for (int i = FORK_USERS - 1; acting == set && i >= 0; i--) {
		user = users[i];
		if (user)
			user->before();
	}
}

static void in_parent(unsigned int set)
{
	const struct fork_handlers *user;

	for (int i = 0; acting == set && i < FORK_USERS; i++) {
		user = users[i];
		if (user)
			user->in_parent();
	}
}

static void in_child(unsigned int set)
{
	const struct fork_handlers *user;

	for (int i = 0; acting == set && i < FORK_USERS; i++) {
		user = users[i];
		if (user)
			user->in_child();
	}
}

/* Defines the functions of one set. Handlers of fork get no argument, so each set needs its own. */
#define SET_FUNCTIONS(set)                  \
	static void before_fork_##set(void) \
	{                                   \
		before_fork(set);           \
	}                                   \
	static void in_parent_##set(void)   \
	{                                   \
		in_parent(set);             \
	}                                   \
	static void in_child_##set(void)    \
	{                                   \
		in_child(set);              \
	}
#define SET(set)                                                   \
	{                                                          \
		before_fork_##set, in_parent_##set, in_child_##set \
	}

SET_FUNCTIONS(1)
SET_FUNCTIONS(2)
SET_FUNCTIONS(3)
SET_FUNCTIONS(4)

static void install(unsigned int set)
{
	static const struct fork_handlers sets[SETS] = {SET(1), SET(2), SET(3), SET(4)};
	const struct fork_handlers *handlers = &sets[set - 1];

	REAL(__register_atfork)(handlers->before, handlers->in_parent, handlers->in_child, NULL);
}

static void want_set(void)
{
	const unsigned int set = ++wanted;

	if (set < SETS)
		install(set);
}

void fork_handlers_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, want_set);
}

/* Installs no further set after the first opening. A later set could not act: the program may have
 * installed handlers of its own before it. */
NOT_INSTRUMENTED void fork_handlers_follow_allocator(void)
{
	if (wanted && !acting)
		want_set();
}

static void choose_set(void)
{
	if (wanted >= SETS)
		install(SETS);
	acting = wanted < SETS ? wanted : SETS;
}

void fork_handlers_enable(enum fork_user user, const struct fork_handlers *handlers)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	users[user] = handlers;
	fork_handlers_install();
	pthread_once(&once, choose_set);
}
