/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/sigbus_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include <rxe/rxe.h>

#include "interpose/libc_real.h"

/* A touch in progress, on its thread's stack. */
struct touch {
	void *back[5]; /* __builtin_setjmp's */
	uint64_t first, length;
};

/*
 * Preloaded libraries have their place in the static block, so that neither a touch nor the
 * handler calls anything to find these.
 */
#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))

static OF_THREAD struct touch *volatile touching;
static OF_THREAD bool unblocked;

/*
 * The program's action, as it stands for a signal that we have taken. Handlers read it without a
 * lock while it is set: its places take turns, and who finds another version than before has read
 * a mixture.
 */
struct taken {
	atomic_bool taken;
	atomic_uint version; /* RESET, and how often it was set, by which the place goes */
	struct sigaction actions[2];
};

/* In a version: the default one, for SA_RESETHAND has reset it. */
#define RESET 1u
#define SET   2u

static struct taken segv, bus;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static struct taken *taken_of(int number)
{
	if (number == SIGSEGV)
		return &segv;
	return number == SIGBUS ? &bus : NULL;
}

static struct sigaction *place(struct taken *t, unsigned int version)
{
	return &t->actions[version / SET % 2];
}

/* The version is for action_reset. */
static struct sigaction action_now(struct taken *t, unsigned int *version)
{
	struct sigaction act;

	do {
		*version = atomic_load_explicit(&t->version, memory_order_acquire);
		act = *place(t, *version);
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load_explicit(&t->version, memory_order_relaxed) != *version);
	if (*version & RESET)
		act = (struct sigaction){.sa_handler = SIG_DFL};
	return act;
}

/* False: it is another one by now. */
static bool action_reset(struct taken *t, unsigned int version)
{
	return atomic_compare_exchange_strong(&t->version, &version, version | RESET);
}

/* With the lock. */
static void set_action(struct taken *t, const struct sigaction *act)
{
	unsigned int next = (atomic_load(&t->version) & ~RESET) + SET;

	/* Who reads a part of what is written here finds that its version has gone. */
	atomic_thread_fence(memory_order_release);
	*place(t, next) = *act;
	atomic_store_explicit(&t->version, next, memory_order_release);
}

/* --- Touching. */

/*
 * A fault whose signal is blocked kills the process, whatever handler there is. One system
 * call for each thread that ever runs the engine.
 */
static __attribute__((cold)) void unblock(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	unblocked = true;
}

__attribute__((noinline)) bool fault_guard(void *dev_ctx, const struct urxe_extent *bytes,
					   void (*fn)(void *arg), void *arg)
{
	struct touch touch;

	(void)dev_ctx;
	touch.first = (uintptr_t)bytes->addr;
	touch.length = bytes->length;
	if (!unblocked)
		unblock();
	if (__builtin_setjmp(touch.back)) {
		touching = NULL;
		return false;
	}
	touching = &touch;
	fn(arg);
	touching = NULL;
	return true;
}

/* --- Signals. */

/* The kernel's doing, not another process's or thread's. */
static bool is_fault(const siginfo_t *info)
{
	return info->si_code > 0;
}

static bool is_handler(const struct sigaction *act)
{
	return act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;
}

/* As the kernel would have ended the process: the fault comes again when the handler returns. */
static void die(int number, const siginfo_t *info)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};

	REAL(sigaction)(number, &by_default, NULL);
	if (!is_fault(info))
		raise(number);
}

/* The program's handler, under the mask that it would have; our return ends that. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	struct taken *t = taken_of(number);
	struct sigaction act;
	unsigned int version;

	do
		act = action_now(t, &version);
	while (is_handler(&act) && act.sa_flags & (int)SA_RESETHAND && !action_reset(t, version));
	/* A fault cannot be ignored. */
	if (act.sa_handler == SIG_IGN && !is_fault(info))
		return;
	if (!is_handler(&act)) {
		die(number, info);
		return;
	}
	if (!(act.sa_flags & SA_NODEFER))
		sigaddset(&act.sa_mask, number);
	pthread_sigmask(SIG_BLOCK, &act.sa_mask, NULL);
	if (act.sa_flags & SA_SIGINFO)
		act.sa_sigaction(number, info, context);
	else
		act.sa_handler(number);
}

/* Runs as if the touch had called it where it faulted. */
static _Noreturn __attribute__((noinline)) void leave(void)
{
	__builtin_longjmp(touching->back, 1);
}

/*
 * A jump out of the handler would leave the thread with what the kernel gives to handlers: a
 * floating-point unit (rounding, denormals) and protection keys as of a new process, and no
 * stack for signals where SS_AUTODISARM is set. So the handler returns, to `leave`.
 */
static void go_to_leave(ucontext_t *context)
{
#if defined(__x86_64__)
	greg_t *regs = context->uc_mcontext.gregs;

	/* Aligned as behind a call. */
	regs[REG_RSP] = (regs[REG_RSP] & ~(greg_t)15) - 8;
	regs[REG_RIP] = (greg_t)(uintptr_t)leave;
#elif defined(__aarch64__)
	context->uc_mcontext.pc = (uintptr_t)leave;
#else
#error "which registers are the program counter and the stack pointer of this processor?"
#endif
}

static bool touches(const struct touch *touch, uint64_t addr)
{
	return addr - touch->first < touch->length;
}

/* A handler of the program's may run in the middle of a touch: its faults are not the touch's. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	struct touch *touch = touching;

	if (touch && is_fault(info) && touches(touch, (uintptr_t)info->si_addr))
		go_to_leave(context);
	else
		pass_on(number, info, context);
}

static bool is_ours(const struct sigaction *act)
{
	return act->sa_flags & SA_SIGINFO && act->sa_sigaction == on_fault;
}

/*
 * SA_NODEFER, and no mask: the program's handler runs under its own. SA_ONSTACK: a program that
 * has made a stack for signals may have too little room elsewhere.
 */
static int take(int number)
{
	struct sigaction ours = {.sa_sigaction = on_fault,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART};
	struct taken *t = taken_of(number);
	struct sigaction was;

	if (REAL(sigaction)(number, NULL, &was))
		return -errno;
	/* Another one's, where it was set past us since. */
	if (is_ours(&was))
		return 0;
	set_action(t, &was);
	/* From here on no thread begins to set one past us; who has begun finds that it is taken.
	 */
	atomic_store(&t->taken, true);
	sigemptyset(&ours.sa_mask);
	if (REAL(sigaction)(number, &ours, &was)) {
		atomic_store(&t->taken, false);
		return -errno;
	}
	/* That of a thread which had begun before, and came first. */
	if (!is_ours(&was))
		set_action(t, &was);
	return 0;
}

/* With no signal let in: its handler might call sigaction, too. */
static void change_begin(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	pthread_mutex_lock(&changing);
}

static void change_end(const sigset_t *old)
{
	pthread_mutex_unlock(&changing);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

int fault_install(void)
{
	sigset_t old;
	int rc;

	change_begin(&old);
	rc = take(SIGSEGV);
	if (!rc)
		rc = take(SIGBUS);
	change_end(&old);
	return rc;
}

bool fault_installed(void)
{
	return atomic_load(&segv.taken) && atomic_load(&bus.taken);
}

void fault_in_child(void)
{
	pthread_mutex_init(&changing, NULL);
}

static bool takes(int number)
{
	return atomic_load_explicit(&taken_of(number)->taken, memory_order_acquire);
}

/*
 * The signal was taken while this thread set an action past us, which may stand in the place of
 * ours now. `was` is what it has found there.
 */
static void catch_up(int number, struct sigaction *was)
{
	unsigned int version;
	sigset_t mask;

	change_begin(&mask);
	if (is_ours(was))
		*was = action_now(taken_of(number), &version);
	take(number);
	change_end(&mask);
}

static int set_past_us(int number, const struct sigaction *act, struct sigaction *was)
{
	if (REAL(sigaction)(number, act, was))
		return -1;
	if (takes(number))
		catch_up(number, was);
	return 0;
}

static void set_ours(int number, const struct sigaction *act, struct sigaction *was)
{
	struct taken *t = taken_of(number);
	struct sigaction next;
	unsigned int version;
	sigset_t mask;

	/* A bad address must not be met with the lock. */
	if (act)
		next = *act;
	change_begin(&mask);
	*was = action_now(t, &version);
	if (act)
		set_action(t, &next);
	change_end(&mask);
}

int fault_action(int number, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction was;

	if (takes(number))
		set_ours(number, act, &was);
	else if (set_past_us(number, act, &was))
		return -1;
	if (old)
		*old = was;
	return 0;
}
