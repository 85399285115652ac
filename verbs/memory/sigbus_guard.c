/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/sigbus_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include <rxe/rxe.h>

#include "process/emulated_fd.h"
#include "process/libc_real.h"

/* A guarded access in progress, on its thread's stack. */
struct guarded_access {
	void *jump[5]; /* the buffer of __builtin_setjmp */
	uint64_t first, length;
	struct guarded_access *outer; /* the access that this signal handler interrupts; or NULL */
};

/* Initial-exec: neither an access nor the handler may call the dynamic linker to find these. */
#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))

static OF_THREAD struct guarded_access *volatile current_access;
static OF_THREAD bool unblocked;

/*
 * The program's action for a signal that this library handles. Handlers read it without a lock:
 * writers alternate between two slots, and a reader that finds a changed version reads again.
 */
struct taken_signal {
	atomic_bool taken;
	atomic_uint version; /* bit RESET; above it the number of changes, whose parity selects the
				slot */
	struct sigaction actions[2];
};

/* Bit of `version`: SA_RESETHAND has reset the action to the default. SET: one change more. */
#define RESET 1u
#define SET   2u

static struct taken_signal segv, bus;
/* Serialises changes of the program's actions for SIGSEGV and SIGBUS, in `segv` and `bus`. The
 * holder blocks all signals but SIGSYS (lock_actions). Rank 4 (docs/locking.md). */
static pthread_mutex_t actions_lock = PTHREAD_MUTEX_INITIALIZER;

static struct taken_signal *signal_of(int number)
{
	if (number == SIGSEGV)
		return &segv;
	return number == SIGBUS ? &bus : NULL;
}

static struct sigaction *action_slot(struct taken_signal *t, unsigned int version)
{
	return &t->actions[version / SET % 2];
}

/* Returns the program's action for the signal, SIG_DFL if SA_RESETHAND has reset it. *version:
 * reset_action fails if the action has changed since. */
static struct sigaction action_now(struct taken_signal *t, unsigned int *version)
{
	struct sigaction act;

	do {
		*version = atomic_load_explicit(&t->version, memory_order_acquire);
		act = *action_slot(t, *version);
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load_explicit(&t->version, memory_order_relaxed) != *version);
	if (*version & RESET)
		act.sa_handler = SIG_DFL;
	return act;
}

/* Carries out SA_RESETHAND. False: the program has changed the action meanwhile. A child of vfork
 * shares *t with its parent, so it resets its own action in the kernel: no engine runs there. */
static bool reset_action(struct taken_signal *t, unsigned int version, int number)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};

	if (!fd_is_owner()) {
		/* If a seccomp filter refuses the call, the action stays. */
		(void)REAL(sigaction)(number, &by_default, NULL);
		return true;
	}
	return atomic_compare_exchange_strong(&t->version, &version, version | RESET);
}

/* Stores the program's action. With actions_lock. */
static void set_action(struct taken_signal *t, const struct sigaction *act)
{
	unsigned int next = (atomic_load(&t->version) & ~RESET) + SET;

	/* A reader of a half-written slot finds a changed version. */
	atomic_thread_fence(memory_order_release);
	*action_slot(t, next) = *act;
	atomic_store_explicit(&t->version, next, memory_order_release);
}

/* --- Guarded accesses. */

/*
 * Unblocks SIGSEGV and SIGBUS: a fault whose signal is blocked kills the process, whatever its
 * handler. Costs one system call for each thread that ever runs the engine.
 */
static __attribute__((cold)) void unblock_faults(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	unblocked = true;
}

__attribute__((noinline)) bool sigbus_guard_run(void *dev_ctx, const struct urxe_extent *bytes,
						void (*fn)(void *arg), void *arg)
{
	struct guarded_access access;

	(void)dev_ctx;
	/* Not NULL if this is a signal handler that polls, and has interrupted an access of its
	 * thread that needs no adapter.lock. */
	access.outer = current_access;
	access.first = (uintptr_t)bytes->addr;
	access.length = bytes->length;
	if (!unblocked)
		unblock_faults();
	if (__builtin_setjmp(access.jump)) {
		current_access = access.outer;
		return false;
	}
	current_access = &access;
	fn(arg);
	current_access = access.outer;
	return true;
}

/* --- Signals. */

/* Whether the signal is a report of the kernel that belongs to no instruction: memory that no
 * thread has accessed is broken, or a memory tag was wrong some time ago. */
static bool is_late_report(const siginfo_t *info)
{
	return info->si_code == (info->si_signo == SIGBUS ? BUS_MCEERR_AO : SEGV_MTEAERR);
}

/* Whether the kernel has sent the signal because the interrupted instruction faulted; not a process
 * by kill(2) or similar calls. */
static bool is_fault(const siginfo_t *info)
{
	return info->si_code > 0 && !is_late_report(info);
}

static bool is_handler(const struct sigaction *act)
{
	return act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;
}

static void end_process(int number, const siginfo_t *info);

/* Carries out the program's action for the signal. The kernel has already blocked the action's
 * mask, unless another thread has set the action since. The return from on_fault() restores it. */
static void call_program_handler(int number, siginfo_t *info, void *context)
{
	struct taken_signal *t = signal_of(number);
	struct sigaction act;
	unsigned int version;

	do
		act = action_now(t, &version);
	while (is_handler(&act) && act.sa_flags & (int)SA_RESETHAND &&
	       !reset_action(t, version, number));
	/* The kernel ignores no fault, even with SIG_IGN. */
	if (act.sa_handler == SIG_IGN && !is_fault(info))
		return;
	if (!is_handler(&act)) {
		end_process(number, info);
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

/* A thread continues here after on_fault(), as if the faulting instruction had called this. */
static _Noreturn __attribute__((noinline)) void abort_access(void)
{
	__builtin_longjmp(current_access->jump, 1);
}

/* Makes the return from the signal handler continue in abort_access. A jump out of the handler
 * would leave the thread with the state that the kernel sets for handlers: floating-point rounding,
 * denormals and protection keys of a new process, and no signal stack if SS_AUTODISARM is set. */
static void return_to_abort(ucontext_t *context)
{
#if defined(__x86_64__)
	greg_t *regs = context->uc_mcontext.gregs;

	/* The stack pointer as the ABI requires it at a function's start. */
	regs[REG_RSP] = (regs[REG_RSP] & ~(greg_t)15) - 8;
	regs[REG_RIP] = (greg_t)(uintptr_t)abort_access;
#elif defined(__aarch64__)
	context->uc_mcontext.pc = (uintptr_t)abort_access;
#else
#error "which registers are the program counter and the stack pointer of this processor?"
#endif
}

static bool is_within(const struct guarded_access *access, uint64_t addr)
{
	return addr - access->first < access->length;
}

/* The handler of this library for SIGSEGV and SIGBUS: aborts the guarded access that faulted, or
 * calls the program's handler. A signal handler of the program may interrupt a guarded access:
 * faults at other addresses belong to that handler. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	struct guarded_access *access = current_access;

	if (access && is_fault(info) && is_within(access, (uintptr_t)info->si_addr))
		return_to_abort(context);
	else
		call_program_handler(number, info, context);
}

static bool is_ours(const struct sigaction *act)
{
	return act->sa_flags & SA_SIGINFO && act->sa_sigaction == on_fault;
}

/* Flags that the kernel carries out before our handler runs. */
#define KERNEL_FLAGS (SA_ONSTACK | SA_RESTART | SA_NODEFER)
/* Flags that our handler carries out. */
#define OUR_FLAGS (int)(SA_SIGINFO | SA_RESETHAND)

/*
 * Installs this library's handler for the signal, when the program's action is *of_program. With
 * the mask of that action: the kernel must block its signals before our handler runs, so that none
 * of them that is pending comes first. If the program has a handler, KERNEL_FLAGS are as in its
 * action; else all of them are set. 0, or -1 and errno.
 */
static int install_handler(int number, const struct sigaction *of_program, struct sigaction *was)
{
	struct sigaction ours = *of_program;

	ours.sa_sigaction = on_fault;
	ours.sa_flags = (ours.sa_flags & ~OUR_FLAGS) | SA_SIGINFO;
	if (!is_handler(of_program))
		ours.sa_flags |= KERNEL_FLAGS;
	return REAL(sigaction)(number, &ours, was);
}

/* Installs our handler for the program's action *act. Removes from *act what the kernel does not
 * keep, as sigaction(2) reports it later: unknown flags, and signals that cannot be blocked. */
static void install_program_action(int number, struct sigaction *act)
{
	const int kept = OUR_FLAGS | KERNEL_FLAGS;
	struct sigaction ours = {0};

	if (install_handler(number, act, NULL) || REAL(sigaction)(number, NULL, &ours) ||
	    !is_ours(&ours))
		return;
	act->sa_flags = (act->sa_flags & kept) | (ours.sa_flags & ~kept);
	act->sa_mask = ours.sa_mask;
	act->sa_restorer = ours.sa_restorer;
}

static int take_signal(int number)
{
	struct taken_signal *t = signal_of(number);
	struct sigaction was;

	if (REAL(sigaction)(number, NULL, &was))
		return -errno;
	/* Installed already, and the program has not replaced it by a raw system call. */
	if (is_ours(&was))
		return 0;
	set_action(t, &was);
	/*
	 * From now on, sigbus_guard_sigaction() of other threads stores their actions in *t. After
	 * a system call in progress a thread finds `taken` set, and calls retake_signal().
	 */
	atomic_store(&t->taken, true);
	if (install_handler(number, action_slot(t, atomic_load(&t->version)), &was)) {
		atomic_store(&t->taken, false);
		return -errno;
	}
	/* Another thread has set an action since this function read it. */
	if (!is_ours(&was)) {
		set_action(t, &was);
		install_handler(number, &was, NULL);
	}
	return 0;
}

/*
 * Takes actions_lock. First blocks signals, because a handler that calls sigaction would wait for
 * its own thread. *old: the mask for unlock_actions. Does not block SIGSYS: if a filter of seccomp
 * traps a system call by SIGSYS, and the thread blocks that signal, the kernel kills the process.
 */
static void lock_actions(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_BLOCK, &all, old);
	pthread_mutex_lock(&actions_lock);
}

static void unlock_actions(const sigset_t *old)
{
	pthread_mutex_unlock(&actions_lock);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/*
 * Ends the process as the default action does. A fault occurs again when the handler returns; else
 * this function sends the signal. The process may survive that: a debugger may suppress the signal,
 * and process 1 of a PID namespace does not get it. Then this function installs the handler again.
 */
static void end_process(int number, const siginfo_t *info)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	sigset_t set, old;

	REAL(sigaction)(number, &by_default, NULL);
	if (is_fault(info))
		return;
	raise(number);
	/* The kernel blocks the signal while on_fault() runs, unless SA_NODEFER is set. */
	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	if (!fd_is_owner())
		return;
	lock_actions(&old);
	take_signal(number);
	unlock_actions(&old);
}

int sigbus_guard_install(void)
{
	sigset_t old;
	int rc;

	lock_actions(&old);
	rc = take_signal(SIGSEGV);
	if (!rc)
		rc = take_signal(SIGBUS);
	unlock_actions(&old);
	return rc;
}

bool sigbus_guard_installed(void)
{
	return atomic_load(&segv.taken) && atomic_load(&bus.taken);
}

void sigbus_guard_fork_child(void)
{
	pthread_mutex_init(&actions_lock, NULL);
}

static bool is_taken(int number)
{
	return atomic_load_explicit(&signal_of(number)->taken, memory_order_acquire);
}

/* Installs our handler again: another thread has taken the signal for this library while this
 * thread set an action by the system call, which may have replaced ours. *was: the action that this
 * thread has replaced. If that is our handler, *was becomes the program's action. */
static void retake_signal(int number, struct sigaction *was)
{
	unsigned int version;
	sigset_t mask;

	lock_actions(&mask);
	if (is_ours(was))
		*was = action_now(signal_of(number), &version);
	take_signal(number);
	unlock_actions(&mask);
}

static int set_untaken(int number, const struct sigaction *act, struct sigaction *was)
{
	if (REAL(sigaction)(number, act, was))
		return -1;
	if (is_taken(number))
		retake_signal(number, was);
	return 0;
}

static void set_taken(int number, const struct sigaction *act, struct sigaction *was)
{
	struct taken_signal *t = signal_of(number);
	struct sigaction next;
	unsigned int version;
	sigset_t mask;

	/* Reads *act before it takes the lock: if the address is bad, the thread faults here. */
	if (act)
		next = *act;
	lock_actions(&mask);
	*was = action_now(t, &version);
	if (act) {
		install_program_action(number, &next);
		set_action(t, &next);
	}
	unlock_actions(&mask);
}

/*
 * Sets the action of a child by the system call only: no engine runs there, and a child of vfork
 * shares this file's variables with its parent, but has signal actions of its own.
 */
static int set_in_child(int number, const struct sigaction *act, struct sigaction *was)
{
	unsigned int version;

	if (REAL(sigaction)(number, act, was))
		return -1;
	if (is_ours(was))
		*was = action_now(signal_of(number), &version);
	return 0;
}

int sigbus_guard_sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction was;

	if (is_taken(number) && !fd_is_owner()) {
		if (set_in_child(number, act, &was))
			return -1;
	} else if (is_taken(number)) {
		set_taken(number, act, &was);
	} else if (set_untaken(number, act, &was)) {
		return -1;
	}
	if (old)
		*old = was;
	return 0;
}
