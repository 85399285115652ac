/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The handlers of pthread_atfork(3) of this library: when they are installed, and what they call.
 * interpose/atfork_calls.c sees the program's calls of pthread_atfork; attach/fork.c and
 * rdmacm/rdmacm_file.c have the functions that are called.
 *
 * Before it forks, fork() calls the handlers in the opposite order of their installation; after the
 * fork, in the order of installation. The handlers of this library hold its locks in between. So
 * they have to be installed before those of the program, which may call verbs or wait for a thread
 * that does, and after those of the allocator, whose locks a holder of adapter.lock may need. An
 * allocator may install its handlers after the program's first ones. Then the library installs a
 * further set of its own. The set that is the last when the program first opens a device or rdma_cm
 * takes the locks, and the other sets do nothing.
 */
#ifndef URXE_VERBS_PROCESS_FORK_HANDLERS_H
#define URXE_VERBS_PROCESS_FORK_HANDLERS_H

/* Functions that fork() calls. If another thread enables the handlers during a fork, fork() calls
 * `in_parent` and `in_child` without `before`. */
struct fork_handlers {
	void (*before)(void);
	void (*in_parent)(void);
	void (*in_child)(void);
};

/* The users of the handlers, in the order of the calls after the fork; before it, reversed. */
enum fork_user { FORK_ADAPTER, FORK_RDMACM, FORK_USERS };

/* Call it before the program installs handlers: installs this library's, if it has installed none.
 * Any thread. */
void fork_handlers_install(void);
/* Call it when an allocator has installed handlers: installs a further set of this library behind
 * them, if it has installed one, and none acts yet. Any thread. */
void fork_handlers_follow_allocator(void);
/* Call it when the process attaches, or opens rdma_cm: fork() calls `handlers` from now on. Further
 * calls for the same user change nothing. Any thread. */
void fork_handlers_enable(enum fork_user user, const struct fork_handlers *handlers);

#endif
