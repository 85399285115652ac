/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stacks that lie in registered memory. */
#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "region.h"
#include "row.h"
#include "snapshot.h"

/* Deep enough to use many pages of the stack. */
static unsigned int add_recursively(unsigned int depth)
{
	volatile uint8_t room[2000];

	memset((void *)room, (int)depth, sizeof(room));
	return depth ? room[1999] % 2 + add_recursively(depth - 1) : 0;
}

static void *use_stack(void *result)
{
	*(unsigned int *)result = add_recursively(100);
	return result;
}

static void run_thread(const struct region *region)
{
	unsigned int result = 0;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, region->bytes, region->size) ||
	    pthread_create(&thread, &attr, use_stack, &result))
		errx(1, "cannot start a thread on the stack");
	say("join returns %d", pthread_join(thread, NULL));
	say("the thread computes %u", result);
}

/* `rounds` threads, one after another, with traffic to the stack's memory in between. */
static void thread_stack(uintptr_t rounds)
{
	struct region region = region_map(MIB);

	for (uintptr_t i = 0; i < rounds; i++) {
		region_fill(&region, (uint8_t)i);
		run_thread(&region);
	}
	region_unmap(&region);
}

static int go[2];

static void *await_and_use_stack(void *result)
{
	char byte;

	if (read(go[0], &byte, 1) != 1)
		err(1, "read");
	return use_stack(result);
}

/* The thread lives already; the peer writes to the half that it does not use yet. */
static void registered_while_in_use(uintptr_t unused)
{
	uint8_t *bytes = region_reserve(MIB);
	struct region region, half;
	unsigned int result = 0;
	struct timespec at;
	pthread_attr_t attr;
	pthread_t thread;

	(void)unused;
	pthread_attr_init(&attr);
	if (pipe(go) || pthread_attr_setstack(&attr, bytes, MIB) ||
	    pthread_create(&thread, &attr, await_and_use_stack, &result))
		errx(1, "cannot start a thread on the stack");
	region = region_register(bytes, MIB);
	half = region_register(bytes, MIB / 2);
	region_fill(&half, 3);
	if (write(go[1], "", 1) != 1)
		err(1, "write");
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += 20;
	say("join returns %d", pthread_timedjoin_np(thread, NULL, &at));
	say("the thread computes %u", result);
	region_deregister(&half);
	region_unmap(&region);
}

static volatile int handled;

static void handle(int number)
{
	(void)number;
	handled += add_recursively(20) == 10;
}

static void alternate_stack(uintptr_t unused)
{
	struct region region = region_map(MIB);
	const stack_t stack = {.ss_sp = region.bytes, .ss_size = region.size};
	const struct sigaction act = {.sa_handler = handle, .sa_flags = SA_ONSTACK};

	(void)unused;
	region_fill(&region, 3);
	handled = 0;
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &act, NULL))
		err(1, "cannot set the alternate stack");
	raise(SIGUSR1);
	region_fill(&region, 4);
	raise(SIGUSR1);
	say("signals that were handled: %d", handled);
	if (sigaltstack(&(const stack_t){.ss_flags = SS_DISABLE}, NULL))
		err(1, "sigaltstack");
	region_unmap(&region);
}

/* Pages of the main stack, between the frames of this function and its callers. */
static void main_stack(uintptr_t unused)
{
	uint8_t room[18 * PAGE];
	uint8_t *bytes = (uint8_t *)(((uintptr_t)room + PAGE - 1) & ~(PAGE - 1));
	struct region region = region_register(bytes, 16 * PAGE);

	(void)unused;
	region_fill(&region, 3);
	say("the memory holds what the peer wrote: %s", region_says(&region, 3));
	say("recursion gives %u", add_recursively(100));
	say("the memory is the same: %s", region_says(&region, 3));
	snapshot_check(&region, snapshot_fork);
	region_deregister(&region);
}

static ucontext_t here, there;
static volatile unsigned int computed;

static void compute(void)
{
	computed = add_recursively(100);
}

static void coroutine_stack(uintptr_t unused)
{
	struct region region = region_map(MIB);

	(void)unused;
	region_fill(&region, 3);
	if (getcontext(&there))
		err(1, "getcontext");
	there.uc_stack.ss_sp = region.bytes;
	there.uc_stack.ss_size = region.size;
	there.uc_link = &here;
	makecontext(&there, compute, 0);
	if (swapcontext(&here, &there))
		err(1, "swapcontext");
	say("the coroutine computes %u", computed);
	region_unmap(&region);
}

const struct row stack_rows[] = {
	{"thread", thread_stack, 1},
	{"threads_one_after_another", thread_stack, 5},
	{"registered_while_in_use", registered_while_in_use, 0},
	{"alternate_signal_stack", alternate_stack, 0},
	{"main_stack", main_stack, 0},
	{"coroutine", coroutine_stack, 0},
	{0},
};
