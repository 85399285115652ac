/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process runs as urxed's user, so without a filter its code could trace, signal or limit
 * urxed. The list allows what DPDK's vhost library, its threads and glibc need after the start of
 * the EAL: no new process, no file, no signal to other processes, and no socket but a UNIX stream.
 */
#include "urxed/vhost/vhost_syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <seccomp.h>

/* A system call, what it gets, and the conditions on its arguments, of which all must hold. */
struct syscall_rule {
	int number; /* negative: the architecture lacks the call */
	uint32_t action;
	unsigned int n;
	struct scmp_arg_cmp checks[2];
};

/* The checks compare the lower 32 bits of an argument, because the kernel uses no others. */
#define IS(arg, value)   SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, UINT32_MAX, value)
#define HAS(arg, bits)   SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bits, bits)
#define LACKS(arg, bits) SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bits, 0)

#define CALL(name)                             \
	{                                      \
		SCMP_SYS(name), SCMP_ACT_ALLOW \
	}
#define FAIL_CALL(name, err)                        \
	{                                           \
		SCMP_SYS(name), SCMP_ACT_ERRNO(err) \
	}
#define CHECKED(name, n, ...)                      \
	{                                          \
		SCMP_SYS(name), SCMP_ACT_ALLOW, n, \
		{                                  \
			__VA_ARGS__                \
		}                                  \
	}

static const struct syscall_rule allowed[] = {
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
	CHECKED(socket, 2, IS(0, AF_UNIX), IS(1, SOCK_STREAM)),
	CHECKED(socket, 2, IS(0, AF_UNIX), IS(1, SOCK_STREAM | SOCK_CLOEXEC)),
	CALL(bind),
	CALL(listen),
	CALL(getsockopt),
	CALL(setsockopt),
	CALL(unlinkat),
	CALL(faccessat),
	CALL(getsockname),
	CALL(getpeername),
	CHECKED(fcntl, 1, IS(1, F_GETFD)),
	CHECKED(fcntl, 1, IS(1, F_SETFD)),
	CHECKED(fcntl, 1, IS(1, F_GETFL)),
	CHECKED(fcntl, 1, IS(1, F_SETFL)),
	CHECKED(ioctl, 1, IS(1, FIONBIO)),
	CHECKED(ioctl, 1, IS(1, FIONREAD)),
	/* For memory, of which none becomes executable. */
	CHECKED(mmap, 1, LACKS(2, PROT_EXEC)),
	CHECKED(mprotect, 1, LACKS(2, PROT_EXEC)),
	CALL(munmap),
	CALL(mremap),
	CALL(madvise),
	CALL(brk),
	CALL(get_mempolicy),
	/* For threads. */
	CALL(futex),
	CHECKED(clone, 1, HAS(0, CLONE_THREAD)),
	FAIL_CALL(clone3, ENOSYS),
	/* Sets an address as clone with CLONE_CHILD_CLEARTID does, where glibc waits for the end of
	 * a thread. */
	CALL(set_tid_address),
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
	CHECKED(prctl, 1, IS(0, PR_SET_NAME)),
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
	/* Older calls for the same, which arm64 lacks. */
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

static int add_rules(scmp_filter_ctx filter, const struct syscall_rule *rules, size_t n)
{
	int rc = 0;

	for (const struct syscall_rule *r = rules; r < rules + n && !rc; r++)
		if (r->number >= 0)
			rc = seccomp_rule_add_array(filter, r->action, r->number, r->n, r->checks);
	return rc;
}

/* The process has set no_new_privs already, and the first filter forbids to set it again. SYSRAWRC:
 * the kernel's errors are returned. Kernels before 5.11 check a search tree faster than a list. */
static int load_filter(scmp_filter_ctx filter)
{
	(void)seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS)
		       ?: seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0)
		       ?: seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1)
		       ?: seccomp_load(filter);
}

/* Other architectures have other arguments, as s390x for clone, or other calls, as mmap2. */
static bool knows_arguments(void)
{
	return seccomp_arch_native() == SCMP_ARCH_X86_64 ||
	       seccomp_arch_native() == SCMP_ARCH_AARCH64;
}

/* Installs a filter of the rules, and of `optional` unless it is NULL; `otherwise`: what other
 * system calls get. */
static int install_filter(const struct syscall_rule *rules, size_t n,
			  const struct syscall_rule *optional, uint32_t otherwise)
{
	scmp_filter_ctx filter;
	int rc;

	if (!knows_arguments())
		return -ENOTSUP;
	filter = seccomp_init(otherwise);
	if (!filter)
		return -ENOMEM;
	rc = add_rules(filter, rules, n) ?: add_rules(filter, optional, optional != NULL)
	     ?: load_filter(filter);
	seccomp_release(filter);
	return rc;
}

int vhost_syscalls_limit(bool connects)
{
	return install_filter(allowed, sizeof(allowed) / sizeof(allowed[0]),
			      connects ? &connect_rule : NULL, SCMP_ACT_ERRNO(EPERM));
}

/* Installs a second filter, because an installed one cannot be changed: a call must pass both. */
int vhost_syscalls_limit_further(bool connects)
{
	return install_filter(start_only, sizeof(start_only) / sizeof(start_only[0]),
			      connects ? NULL : &socket_rule, SCMP_ACT_ALLOW);
}
