/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process runs as urxed's user, so without a filter its code could trace, signal or limit
 * urxed. The list allows what DPDK's vhost library, its threads and glibc need after the start of
 * the EAL: no new process, no file, no signal to other processes, and no socket but a UNIX stream.
 */
#include "urxed/vhost/vhost_syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef NATIVE_ARCH

#define VALUES_MAX   8
#define PROGRAM_MAX  512
#define X32_BIT      0x40000000u
#define ANSWER(err)  (SECCOMP_RET_ERRNO | ((err)&SECCOMP_RET_DATA))
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANY          SIZE_MAX /* the rule checks no argument */

/* A rule for a system call. It compares the lower 32 bits of argument `arg`, because the kernel
 * uses no others. */
struct syscall_rule {
	uint32_t number;
	size_t arg; /* index of the argument, or ANY */
	enum { ONE_OF, ALL_BITS, NO_BITS } check;
	uint32_t values[VALUES_MAX];
	uint32_t n;
	uint32_t answer; /* SECCOMP_RET_* if the check succeeds */
	bool and_next;   /* with one value: if the check succeeds, the next rule decides */
};

#define CALL(name)                                                             \
	{                                                                      \
		.number = __NR_##name, .arg = ANY, .answer = SECCOMP_RET_ALLOW \
	}
#define FAIL_CALL(name, err)                                             \
	{                                                                \
		.number = __NR_##name, .arg = ANY, .answer = ANSWER(err) \
	}
#define CHECKED(name, argument, how, ...)                                                      \
	{                                                                                      \
		.number = __NR_##name, .arg = argument, .check = how, .values = {__VA_ARGS__}, \
		.n = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                     \
		.answer = SECCOMP_RET_ALLOW                                                    \
	}

static const struct syscall_rule rules[] = {
	/* For the forwarding loop, and for messages of the virtual machine. */
	CALL(read),
	CALL(write),
	CALL(readv),
	CALL(writev),
	CALL(recvmsg),
	CALL(sendmsg),
	CALL(recvfrom),
	CALL(sendto),
	CALL(ppoll),
	CALL(epoll_pwait),
	CALL(epoll_ctl),
	CALL(epoll_create1),
	CALL(eventfd2),
	CALL(pipe2),
	CALL(close),
	CALL(fstat),
	CALL(newfstatat),
	CALL(shutdown),
	CALL(accept),
	CALL(accept4),
	/* For the vhost-user socket. */
	{.number = __NR_socket, .arg = 0, .values = {AF_UNIX}, .n = 1, .and_next = true},
	CHECKED(socket, 1, ONE_OF, SOCK_STREAM, SOCK_STREAM | SOCK_CLOEXEC),
	CALL(bind),
	CALL(listen),
	CALL(getsockopt),
	CALL(setsockopt),
	CALL(unlinkat),
	CALL(faccessat),
	CALL(getsockname),
	CALL(getpeername),
	CHECKED(fcntl, 1, ONE_OF, F_GETFD, F_SETFD, F_GETFL, F_SETFL),
	CHECKED(ioctl, 1, ONE_OF, FIONBIO, FIONREAD),
	/* For memory, of which none becomes executable. */
	CHECKED(mmap, 2, NO_BITS, PROT_EXEC),
	CHECKED(mprotect, 2, NO_BITS, PROT_EXEC),
	CALL(munmap),
	CALL(mremap),
	CALL(madvise),
	CALL(brk),
	CALL(get_mempolicy),
	/* For threads. */
	CALL(futex),
	CHECKED(clone, 0, ALL_BITS, CLONE_THREAD),
	FAIL_CALL(clone3, ENOSYS),
	CALL(set_robust_list),
	CALL(rseq),
	CALL(sigaltstack),
	CALL(rt_sigprocmask),
	CALL(rt_sigaction),
	CALL(rt_sigreturn),
	CALL(exit),
	CALL(exit_group),
	CALL(getpid),
	CALL(gettid),
	CALL(sched_yield),
	CALL(sched_getaffinity),
	CALL(restart_syscall),
	CALL(membarrier),
	CALL(getrandom),
	CHECKED(prctl, 0, ONE_OF, PR_SET_NAME),
	/*
	 * Returns 0 without effect: the real call could move any process of the user to other CPUs,
	 * and DPDK's threads work without it.
	 */
	FAIL_CALL(sched_setaffinity, 0),
	/* For the time. */
	CALL(clock_gettime),
	CALL(clock_nanosleep),
	CALL(nanosleep),
	CALL(gettimeofday),
	CALL(timerfd_settime),
	/* Lets the process install the second filter, which then forbids this call. */
	CALL(seccomp),
#ifdef __x86_64__
	CALL(poll),
	CALL(select),
	CALL(epoll_wait),
	CALL(epoll_create),
	CALL(eventfd),
	CALL(pipe),
	CALL(stat),
	CALL(lstat),
	CALL(unlink),
	CALL(access),
	CALL(time),
	/* Allowed, because clone with CLONE_CHILD_CLEARTID sets the same address, too: glibc waits
	 * there for the end of a thread. */
	CALL(set_tid_address),
#endif
};

static const struct syscall_rule connect_rule = CALL(connect);

/* The calls that only the port's start needs. Each further bind would leave a file, so a hostile
 * process could fill a file system. */
static const struct syscall_rule start_only[] = {
	FAIL_CALL(bind, EPERM),
	FAIL_CALL(listen, EPERM),
	FAIL_CALL(clone, EPERM),
	FAIL_CALL(seccomp, EPERM),
};

static const struct syscall_rule socket_rule = FAIL_CALL(socket, EPERM);

struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned short n;
};

static void add_code(struct program *p, struct sock_filter code)
{
	p->code[p->n++] = code;
}

#define STATEMENT(p, code, k)     add_code(p, (struct sock_filter)BPF_STMT(code, k))
#define JUMP(p, code, k, yes, no) add_code(p, (struct sock_filter)BPF_JUMP(code, k, yes, no))
#define RETURN(p, answer)         STATEMENT(p, BPF_RET | BPF_K, answer)

/* Adds the start of a filter: it kills a process that uses the system call numbers of another
 * architecture, and loads the number of the call. */
static void add_start(struct program *p)
{
	add_code(p, (struct sock_filter)LOAD(arch));
	JUMP(p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
	RETURN(p, SECCOMP_RET_KILL_PROCESS);
	add_code(p, (struct sock_filter)LOAD(nr));
	JUMP(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	RETURN(p, SECCOMP_RET_KILL_PROCESS);
}

static void load_argument(struct program *p, size_t arg)
{
	STATEMENT(p, BPF_LD | BPF_W | BPF_ABS,
		  (uint32_t)(offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t)));
}

/* Adds the check of a rule with and_next: it fails with EPERM, or goes on with the next rule of the
 * same system call. */
static void add_first_check(struct program *p, const struct syscall_rule *rule)
{
	load_argument(p, rule->arg);
	JUMP(p, BPF_JMP | BPF_JEQ | BPF_K, rule->values[0], 1, 0);
	RETURN(p, ANSWER(EPERM));
	add_code(p, (struct sock_filter)LOAD(nr));
}

/*
 * Adds the checks of one argument: each returns the rule's answer, or goes on with the next check.
 */
static void add_checks(struct program *p, const struct syscall_rule *rule)
{
	load_argument(p, rule->arg);
	for (uint32_t i = 0; i < rule->n; i++) {
		if (rule->check == ONE_OF)
			JUMP(p, BPF_JMP | BPF_JEQ | BPF_K, rule->values[i], 0, 1);
		else if (rule->check == ALL_BITS)
			JUMP(p, BPF_JMP | BPF_JSET | BPF_K, rule->values[i], 0, 1);
		else
			JUMP(p, BPF_JMP | BPF_JSET | BPF_K, rule->values[i], 1, 0);
		RETURN(p, rule->answer);
	}
	RETURN(p, ANSWER(EPERM));
}

static void add_rule(struct program *p, const struct syscall_rule *rule)
{
	unsigned short at = p->n;

	JUMP(p, BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0, 0);
	if (rule->arg == ANY)
		RETURN(p, rule->answer);
	else if (rule->and_next)
		add_first_check(p, rule);
	else
		add_checks(p, rule);
	p->code[at].jf = (uint8_t)(p->n - at - 1);
}

static int install_filter(struct program *p)
{
	const struct sock_fprog filter = {.len = p->n, .filter = p->code};

	long rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);

	/*
	 * A positive result is the number of a thread that the kernel could not give this filter.
	 */
	return rc > 0 ? -ESRCH : rc ? -errno : 0;
}

int vhost_syscalls_limit(bool connects)
{
	struct program program = {.n = 0};

	_Static_assert(sizeof(rules) / sizeof(rules[0]) * 3 < PROGRAM_MAX - 64, "room");
	add_start(&program);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		add_rule(&program, &rules[i]);
	if (connects)
		add_rule(&program, &connect_rule);
	RETURN(&program, ANSWER(EPERM));
	return install_filter(&program);
}

/* Installs a second filter, because an installed one cannot be changed: a call must pass both. */
int vhost_syscalls_limit_further(bool connects)
{
	struct program program = {.n = 0};

	add_start(&program);
	for (size_t i = 0; i < sizeof(start_only) / sizeof(start_only[0]); i++)
		add_rule(&program, &start_only[i]);
	if (!connects)
		add_rule(&program, &socket_rule);
	RETURN(&program, SECCOMP_RET_ALLOW);
	return install_filter(&program);
}

#else

/* This architecture's system calls have other numbers, so there is no filter; vhost_sandbox.c
 * reports that. */
int vhost_syscalls_limit(bool connects)
{
	(void)connects;
	return -ENOTSUP;
}

int vhost_syscalls_limit_further(bool connects)
{
	(void)connects;
	return -ENOTSUP;
}

#endif
