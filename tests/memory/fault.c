/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Page faults in registered memory that the program itself handles: SIGSEGV and userfaultfd. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region.h"
#include "row.h"
#include "snapshot.h"

/* --- mprotect and SIGSEGV */

static volatile uintptr_t fault_page;
static volatile int faults;

static void open_page(int number, siginfo_t *info, void *unused)
{
	(void)number;
	(void)unused;
	fault_page = (uintptr_t)info->si_addr & ~(PAGE - 1);
	faults++;
	if (mprotect((void *)fault_page, PAGE, PROT_READ | PROT_WRITE))
		_exit(99);
}

static void handle_faults(void)
{
	const struct sigaction act = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};

	faults = 0;
	if (sigaction(SIGSEGV, &act, NULL))
		err(1, "sigaction");
}

/* The program write-protects pages and handles SIGSEGV to track writes. */
static void tracked_writes(uintptr_t protection)
{
	struct region region = region_map(MIB);

	region_fill(&region, 3);
	handle_faults();
	if (mprotect(region.bytes, region.size, (int)protection))
		err(1, "mprotect");
	for (size_t at = 0; at < region.size; at += 16 * PAGE)
		*(volatile uint8_t *)(region.bytes + at + 7) = 0x55;
	say("%d faults, the last at byte %lu", faults, fault_page - (uintptr_t)region.bytes);
	if (mprotect(region.bytes, region.size, PROT_READ | PROT_WRITE))
		err(1, "mprotect");
	for (size_t at = 0; at < region.size; at += 16 * PAGE)
		region.bytes[at + 7] = (uint8_t)(3 + at / PAGE);
	say("the memory is the same: %s", region_says(&region, 3));
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static void handler_set_before_registering(uintptr_t protection)
{
	struct region region;

	handle_faults();
	region = region_map(MIB);
	region_fill(&region, 3);
	if (mprotect(region.bytes, PAGE, (int)protection))
		err(1, "mprotect");
	*(volatile uint8_t *)region.bytes = 0x55;
	say("%d faults, byte %#x", faults, region.bytes[0]);
	region_unmap(&region);
}

/* --- What the kernel does before a handler of SIGSEGV runs */

#define SIGNALS 20 /* so that one of them surely interrupts the read */

static volatile int on_signal_stack;
static int pipe_ends[2];
static pthread_t reader;

static void note_stack(int number)
{
	stack_t now;

	(void)number;
	on_signal_stack = !sigaltstack(NULL, &now) && now.ss_flags & SS_ONSTACK;
}

static void *interrupt_reader(void *unused)
{
	for (int i = 0; i < SIGNALS; i++) {
		usleep(10000);
		pthread_kill(reader, SIGSEGV);
	}
	if (write(pipe_ends[1], "", 1) != 1)
		err(1, "write");
	return unused;
}

static void handler_with_flags(uintptr_t flags)
{
	static uint8_t room[64 * 1024];
	const stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	const struct sigaction act = {.sa_handler = note_stack, .sa_flags = (int)flags};
	struct region region = region_map(PAGE);
	pthread_t thread;
	char byte;

	region_fill(&region, 3);
	reader = pthread_self();
	if (sigaltstack(&stack, NULL) || sigaction(SIGSEGV, &act, NULL) || pipe(pipe_ends))
		err(1, "handler");
	if (pthread_create(&thread, NULL, interrupt_reader, NULL))
		errx(1, "pthread_create");
	say("the read ends: %s",
	    read(pipe_ends[0], &byte, 1) == 1 ? "with a byte" : strerror(errno));
	pthread_join(thread, NULL);
	say("the handler ran on the signal stack: %s", on_signal_stack ? "yes" : "no");
	region_unmap(&region);
}

/* A child of vfork has actions of its own. */
static void vfork_child_sets_action(uintptr_t unused)
{
	struct region region = region_map(PAGE);
	struct sigaction now;
	pid_t child;

	(void)unused;
	region_fill(&region, 3);
	handle_faults();
	child = vfork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	sigaction(SIGSEGV, NULL, &now);
	say("the parent has its handler: %s", now.sa_sigaction == open_page ? "yes" : "no");
	region_unmap(&region);
}

/* --- The masks of handlers */

static char order[8];
static volatile size_t handled;

static void note_signal(int number)
{
	order[handled++] = number == SIGSEGV ? 's' : 'u';
}

/* SIGSEGV, whose handler masks SIGUSR1, and SIGUSR1 arrive at once. The handlers run on the
 * thread's stack, or on a signal stack that is as many bytes larger than the kernel demands. */
static void handler_masks_pending_signal(uintptr_t signal_stack)
{
	struct sigaction act = {.sa_handler = note_signal, .sa_flags = SA_ONSTACK};
	struct region region = region_map(PAGE);
	stack_t stack = {.ss_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + signal_stack};
	sigset_t both;

	stack.ss_sp = malloc(stack.ss_size);
	if (!stack.ss_sp || (signal_stack && sigaltstack(&stack, NULL)))
		err(1, "sigaltstack");
	sigemptyset(&both);
	sigaddset(&both, SIGSEGV);
	sigaddset(&both, SIGUSR1);
	act.sa_mask = both;
	if (sigaction(SIGUSR1, &act, NULL) || sigaction(SIGSEGV, &act, NULL))
		err(1, "sigaction");
	sigprocmask(SIG_BLOCK, &both, NULL);
	raise(SIGSEGV);
	raise(SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &both, NULL);
	say("the signals in the order of their handlers: %s", order);
	region_unmap(&region);
}

static char blocked[128];

static void note_blocked(int number)
{
	FILE *status = fopen("/proc/thread-self/status", "re");

	(void)number;
	while (status && fgets(blocked, sizeof(blocked), status))
		if (!strncmp(blocked, "SigBlk:", 7))
			break;
	if (!status)
		err(1, "/proc/thread-self/status");
	fclose(status);
}

/* Every bit of the mask is set, also those of the signals that libc keeps for itself. */
static void handler_masks_all_signals(uintptr_t unused)
{
	struct sigaction act = {.sa_handler = note_blocked};
	struct region region = region_map(PAGE);

	(void)unused;
	memset(&act.sa_mask, 0xff, sizeof(act.sa_mask));
	if (sigaction(SIGSEGV, &act, NULL))
		err(1, "sigaction");
	raise(SIGSEGV);
	say("%s", blocked);
	region_unmap(&region);
}

/* --- The calls of System V */

/* The headers call these functions deprecated, and do not declare the last one. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
int __sigaction(int number, const struct sigaction *act, struct sigaction *old);

static const char *action_name(sighandler_t handler)
{
	if (handler == SIG_HOLD)
		return "held";
	if (handler == SIG_DFL)
		return "the default";
	if (handler == SIG_IGN)
		return "ignored";
	return handler == note_signal ? "the handler" : "another";
}

static const char *action_of(int number)
{
	struct sigaction now;

	if (sigaction(number, NULL, &now))
		err(1, "sigaction");
	return action_name(now.sa_handler);
}

static void system_v_calls(uintptr_t unused)
{
	struct region region = region_map(PAGE);
	struct sigaction was;
	sigset_t mask;

	(void)unused;
	say("sigset: %s", action_name(sigset(SIGSEGV, note_signal)));
	say("the action: %s", action_of(SIGSEGV));
	say("sigset that holds: %s", action_name(sigset(SIGSEGV, SIG_HOLD)));
	say("again: %s", action_name(sigset(SIGSEGV, SIG_HOLD)));
	raise(SIGSEGV);
	say("handled: %zu", handled);
	say("sigset that releases: %s", action_name(sigset(SIGSEGV, note_signal)));
	say("handled: %zu", handled);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	say("blocked: %d", sigismember(&mask, SIGSEGV));
	say("sigset of SIG_ERR: %d", sigset(SIGSEGV, SIG_ERR) == SIG_ERR);
	say("sigignore: %d", sigignore(SIGSEGV));
	say("the action: %s", action_of(SIGSEGV));
	say("__sigaction: %d", __sigaction(SIGSEGV, NULL, &was));
	say("the action: %s", action_name(was.sa_handler));
	region_unmap(&region);
}

/* --- Actions that a signal resets */

static volatile bool child_has_default;

/* The handler runs once in a child of vfork, and once in the parent. */
static void vfork_child_resets_action(uintptr_t unused)
{
	const struct sigaction act = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
	struct region region = region_map(PAGE);
	struct sigaction now;
	pid_t child;

	(void)unused;
	region_fill(&region, 3);
	if (sigaction(SIGSEGV, &act, NULL))
		err(1, "sigaction");
	child = vfork();
	if (!child) {
		raise(SIGSEGV);
		sigaction(SIGSEGV, NULL, &now);
		child_has_default = now.sa_handler == SIG_DFL;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	say("the child has the default action: %s", child_has_default ? "yes" : "no");
	raise(SIGSEGV);
	say("signals that were handled: %s", order);
	region_unmap(&region);
}

/* --- siginterrupt */

static const char *restarts(void)
{
	struct sigaction now;

	if (sigaction(SIGSEGV, NULL, &now))
		err(1, "sigaction");
	return now.sa_flags & SA_RESTART ? "restart" : "end";
}

/* siginterrupt counts for the present handler, and for handlers that `signal` sets later. */
static void interrupted_calls(uintptr_t unused)
{
	struct region region = region_map(PAGE);

	(void)unused;
	signal(SIGSEGV, note_signal);
	say("system calls %s", restarts());
	siginterrupt(SIGSEGV, 1);
	say("after siginterrupt(1): %s", restarts());
	signal(SIGSEGV, note_signal);
	say("after signal: %s", restarts());
	siginterrupt(SIGSEGV, 0);
	say("after siginterrupt(0): %s", restarts());
	signal(SIGSEGV, note_signal);
	say("after signal: %s", restarts());
	region_unmap(&region);
}

/* --- What sigaction reports */

#define UNKNOWN_FLAG 0x400 /* SA_UNSUPPORTED of Linux */

static void say_action(const char *when)
{
	struct sigaction now;

	if (sigaction(SIGSEGV, NULL, &now))
		err(1, "sigaction");
	say("%s: %s, flags %#x, a restorer: %d, in the mask: SIGKILL %d, SIGSTOP %d, SIGUSR1 %d",
	    when, now.sa_handler == SIG_DFL ? "the default" : "a handler",
	    (unsigned int)now.sa_flags, now.sa_restorer != NULL, sigismember(&now.sa_mask, SIGKILL),
	    sigismember(&now.sa_mask, SIGSTOP), sigismember(&now.sa_mask, SIGUSR1));
}

/* The kernel clears flags that it does not know, and signals that cannot be masked. SA_RESETHAND
 * resets the handler alone. */
static void reported_action(uintptr_t flags)
{
	struct sigaction act = {.sa_sigaction = open_page, .sa_flags = (int)flags};
	struct region region = region_map(PAGE);

	region_fill(&region, 3);
	memset(&act.sa_mask, 0xff, sizeof(act.sa_mask));
	if (sigaction(SIGSEGV, &act, NULL))
		err(1, "sigaction");
	say_action("set");
	if (mprotect(region.bytes, PAGE, PROT_READ))
		err(1, "mprotect");
	*(volatile uint8_t *)region.bytes = 0x55;
	say_action("after a fault");
	signal(SIGSEGV, SIG_DFL);
	say_action("the default action");
	region_unmap(&region);
}

/* --- userfaultfd */

static int uffd;

/* Places a page for each fault, until the descriptor closes. */
static void *place_pages(void *unused)
{
	static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
	struct uffd_msg message;

	memset(page, 0x5a, sizeof(page));
	while (read(uffd, &message, sizeof(message)) == (ssize_t)sizeof(message)) {
		struct uffdio_copy copy = {.dst = message.arg.pagefault.address & ~(PAGE - 1),
					   .src = (uintptr_t)page,
					   .len = PAGE};

		if (message.event == UFFD_EVENT_PAGEFAULT && ioctl(uffd, UFFDIO_COPY, &copy) &&
		    errno != EEXIST)
			err(1, "UFFDIO_COPY");
	}
	return unused;
}

static void watch_faults(uint8_t *bytes, size_t size, uint64_t mode)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range = {(uintptr_t)bytes, size}, .mode = mode};

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	skip_unless(uffd >= 0, "userfaultfd");
	if (ioctl(uffd, UFFDIO_API, &api))
		err(1, "UFFDIO_API");
	skip_unless(!ioctl(uffd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
}

static void start_placing(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, place_pages, NULL))
		errx(1, "pthread_create");
	pthread_detach(thread);
}

/* Registering reads the pages, as pinning does: the program has touched those before. */
static void missing_pages(uintptr_t unused)
{
	uint8_t *bytes = region_reserve(MIB);
	struct region half;

	(void)unused;
	watch_faults(bytes, MIB, UFFDIO_REGISTER_MODE_MISSING);
	start_placing();
	for (size_t at = 0; at < MIB / 2; at += PAGE)
		if (bytes[at] != 0x5a)
			errx(1, "byte %#x of a page that was placed", bytes[at]);
	half = region_register(bytes, MIB / 2);
	region_fill(&half, 3);
	say("the memory holds what the peer wrote: %s", region_says(&half, 3));
	say("a page that nobody touched before: %#x", bytes[MIB - 1]);
	snapshot_check(&half, snapshot_fork);
	region_unmap(&half);
}

/* Pages that the program gives up by MADV_DONTNEED after traffic fault again. */
static void missing_after_traffic(uintptr_t unused)
{
	struct region region = region_map(MIB);

	(void)unused;
	region_fill(&region, 3);
	watch_faults(region.bytes, MIB, UFFDIO_REGISTER_MODE_MISSING);
	start_placing();
	if (madvise(region.bytes, MIB / 2, MADV_DONTNEED))
		err(1, "madvise");
	say("bytes %#x and %#x", region.bytes[0], region.bytes[MIB - 1]);
	region_unmap(&region);
}

static struct region registered_by_handler;

static void *register_then_place_pages(void *bytes)
{
	struct pollfd fault = {.fd = uffd, .events = POLLIN};

	if (poll(&fault, 1, -1) != 1)
		err(1, "poll");
	registered_by_handler = region_register(bytes, PAGE);
	say("the handler registers memory");
	return place_pages(NULL);
}

/*
 * A request reads pages that the program has given up. The handler of their faults registers memory
 * before it places the first one.
 */
static void handler_registers_memory(uintptr_t unused)
{
	struct region region = region_map(16 * PAGE);
	uint8_t *other = region_reserve(PAGE);
	pthread_t thread;

	(void)unused;
	for (size_t i = 0; i < 5; i++)
		region_write_to_peer(&region);
	watch_faults(region.bytes, region.size, UFFDIO_REGISTER_MODE_MISSING);
	if (pthread_create(&thread, NULL, register_then_place_pages, other))
		errx(1, "pthread_create");
	pthread_detach(thread);
	if (madvise(region.bytes, region.size, MADV_DONTNEED))
		err(1, "madvise");
	region_write_to_peer(&region);
	say("bytes %#x and %#x", region.bytes[0], region.bytes[region.size - 1]);
	region_unmap(&registered_by_handler);
	region_unmap(&region);
}

static void *lift_protection(void *bytes)
{
	struct uffd_msg message;
	struct uffdio_writeprotect lift = {.range = {(uintptr_t)bytes, MIB}};

	if (read(uffd, &message, sizeof(message)) != (ssize_t)sizeof(message))
		err(1, "read");
	say("a write fault at byte %lu",
	    (unsigned long)(message.arg.pagefault.address & ~(PAGE - 1)) - (uintptr_t)bytes);
	if (ioctl(uffd, UFFDIO_WRITEPROTECT, &lift))
		err(1, "UFFDIO_WRITEPROTECT");
	return NULL;
}

static void write_protected(uintptr_t unused)
{
	struct region region = region_map(MIB);
	struct uffdio_writeprotect protect = {.range = {(uintptr_t)region.bytes, MIB},
					      .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	pthread_t thread;

	(void)unused;
	region_fill(&region, 3);
	watch_faults(region.bytes, MIB, UFFDIO_REGISTER_MODE_WP);
	skip_unless(!ioctl(uffd, UFFDIO_WRITEPROTECT, &protect), "UFFDIO_WRITEPROTECT");
	if (pthread_create(&thread, NULL, lift_protection, region.bytes))
		errx(1, "pthread_create");
	*(volatile uint8_t *)(region.bytes + 5 * PAGE) = 3 + 5;
	pthread_join(thread, NULL);
	say("the memory is the same: %s", region_says(&region, 3));
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	region_unmap(&region);
}

const struct row fault_rows[] = {
	{"sigsegv_handler_of_read_only_memory", tracked_writes, PROT_READ},
	{"sigsegv_handler_of_inaccessible_memory", tracked_writes, PROT_NONE},
	{"sigsegv_handler_set_before_registering", handler_set_before_registering, PROT_READ},
	{"sigsegv_handler_without_flags", handler_with_flags, 0},
	{"sigsegv_handler_that_restarts_calls", handler_with_flags, SA_RESTART},
	{"sigsegv_handler_on_the_signal_stack", handler_with_flags, SA_ONSTACK},
	{"sigsegv_action_of_a_vfork_child", vfork_child_sets_action, 0},
	{"sigsegv_handler_that_masks_a_pending_signal", handler_masks_pending_signal, 0},
	{"sigsegv_handler_on_a_small_signal_stack", handler_masks_pending_signal, 3072},
	{"sigsegv_handler_that_masks_all_signals", handler_masks_all_signals, 0},
	{"sigsegv_action_of_system_v_calls", system_v_calls, 0},
	{"sigsegv_action_that_a_vfork_child_resets", vfork_child_resets_action, 0},
	{"sigsegv_handler_after_siginterrupt", interrupted_calls, 0},
	{"sigsegv_action_with_unknown_flags", reported_action, SA_SIGINFO | UNKNOWN_FLAG},
	{"sigsegv_action_that_is_reset", reported_action, SA_SIGINFO | SA_RESETHAND | SA_ONSTACK},
	{"sigsegv_action_that_may_nest", reported_action, SA_SIGINFO | SA_NODEFER | SA_RESTART},
	{"userfaultfd_missing_pages", missing_pages, 0},
	{"userfaultfd_missing_after_traffic", missing_after_traffic, 0},
	{"userfaultfd_handler_registers_memory", handler_registers_memory, 0},
	{"userfaultfd_write_protection", write_protected, 0},
	{0},
};
