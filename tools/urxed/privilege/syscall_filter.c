/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/syscall_filter.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <seccomp.h>

/* --- The list */

/* The calls that the daemon, its helpers, libc, DPDK with its drivers, libbpf and libmnl make. */
static const char *const allowed[] = {
	/* Memory. mmap and mprotect have rules below. */
	"brk",
	"fallocate",
	"ftruncate",
	"get_mempolicy",
	"madvise",
	"mbind",
	"membarrier",
	"memfd_create",
	"mincore",
	"mlock",
	"mlock2",
	"mremap",
	"msync",
	"munlock",
	"munmap",
	"set_mempolicy",

	/* Files: the run directory, /proc and /sys, devices of uplinks. */
	"access",
	"chdir",
	"chmod",
	"close",
	"close_range",
	"creat",
	"dup",
	"dup2",
	"dup3",
	"faccessat",
	"faccessat2",
	"fchmod",
	"fchmodat",
	"fcntl",
	"fcntl64",
	"fdatasync",
	"flock",
	"fstat",
	"fstat64",
	"fstatat64",
	"fstatfs",
	"fstatfs64",
	"fsync",
	"getcwd",
	"getdents",
	"getdents64",
	"ioctl",
	"lseek",
	"_llseek",
	"lstat",
	"lstat64",
	"mkdir",
	"mkdirat",
	"newfstatat",
	"open",
	"openat",
	"pread64",
	"preadv",
	"pwrite64",
	"pwritev",
	"read",
	"readlink",
	"readlinkat",
	"readv",
	"rename",
	"renameat",
	"renameat2",
	"rmdir",
	"stat",
	"stat64",
	"statfs",
	"statfs64",
	"statx",
	"symlink",
	"symlinkat",
	"umask",
	"unlink",
	"unlinkat",
	"utimensat",
	"write",
	"writev",

	/* Waiting. */
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"epoll_create",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"eventfd",
	"eventfd2",
	"futex",
	"futex_waitv",
	"gettimeofday",
	"nanosleep",
	"pipe",
	"pipe2",
	"poll",
	"ppoll",
	"pselect6",
	"restart_syscall",
	"sched_yield",
	"select",
	"signalfd4",
	"time",
	"timerfd_create",
	"timerfd_gettime",
	"timerfd_settime",

	/* Sockets. socket has rules below. */
	"accept",
	"accept4",
	"bind",
	"connect",
	"getpeername",
	"getsockname",
	"getsockopt",
	"listen",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
	"socketpair",

	/* Processes and threads. clone has a rule below. */
	"exit",
	"exit_group",
	"get_robust_list",
	"getcpu",
	"getegid",
	"geteuid",
	"getgid",
	"getgroups",
	"getpgrp",
	"getpid",
	"getppid",
	"getpriority",
	"getrandom",
	"getresgid",
	"getresuid",
	"getrlimit",
	"getrusage",
	"gettid",
	"getuid",
	"pause",
	"pidfd_open",
	"prlimit64",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sched_getaffinity",
	"sched_getattr",
	"sched_getparam",
	"sched_getscheduler",
	"sched_setaffinity",
	"sched_setattr",
	"sched_setscheduler",
	"set_robust_list",
	"set_tid_address",
	"setrlimit",
	"sigaltstack",
	"sysinfo",
	"tgkill",
	"uname",
	"wait4",
	"waitid",

	/* To give up rights: capabilities, filters. */
	"arch_prctl",
	"capget",
	"capset",
	"prctl",
	"seccomp",

	/* The XDP program of af_xdp:, which needs CAP_BPF too. */
	"bpf",
};

/* For UNIX sockets of programs, for uplinks, and for the kernel's network configuration. */
static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_XDP};

#define NAMESPACES                                                                    \
	(CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | \
	 CLONE_NEWUSER | CLONE_NEWUTS)

/* --- The rules */

/* Allows the calls of the list; skips a name that this architecture does not have. This function
 * and the next ones return 0 or a negative errno value. */
static int allow_names(scmp_filter_ctx filter)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && !rc; i++) {
		int number = seccomp_syscall_resolve_name(allowed[i]);

		if (number >= 0)
			rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
	}
	return rc;
}

static int allow_families(scmp_filter_ctx filter)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !rc; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
	return rc;
}

/* Allows mmap or mprotect (`number`) only for memory that is not both writable and executable, so
 * no code can be written at run time. */
static int allow_protection(scmp_filter_ctx filter, int number)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
				  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	return rc
		       ?: seccomp_rule_add(
				  filter, SCMP_ACT_ALLOW, number, 1,
				  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_WRITE | PROT_EXEC, PROT_EXEC));
}

/* Allows threads and forks, but no new namespaces. The flags of clone3 are in memory, where seccomp
 * cannot check them, so clone3 fails with ENOSYS, after which libc calls clone. */
static int allow_clone(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				  SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES, 0));

	return rc ?: seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

static int load_filter(scmp_filter_ctx filter)
{
	/* TSYNC filters DPDK's threads, too. Kernels before 5.11 check a search tree faster than a
	 * list. */
	int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	/* The kernel's errors are returned, not ECANCELED. */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	rc = rc ?: allow_names(filter) ?: allow_families(filter);
	rc = rc ?: allow_protection(filter, SCMP_SYS(mmap));
	rc = rc ?: allow_protection(filter, SCMP_SYS(mprotect));
	rc = rc ?: allow_clone(filter);
	return rc ?: seccomp_load(filter);
}

int syscall_filter_install(void)
{
	static bool installed; /* helpers that are forked later inherit the filter */
	scmp_filter_ctx filter;
	int rc;

	if (installed || prctl(PR_GET_SECCOMP) < 0)
		return 0;
	filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!filter)
		return -ENOMEM;
	rc = load_filter(filter);
	seccomp_release(filter);
	installed = !rc;
	return rc;
}
