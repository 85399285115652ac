/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interposed libc functions that take a descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <linux/userfaultfd.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "adapter/adapter.h"
#include "attach/main_thread.h"
#include "interpose/interpose.h"
#include "objects/settle.h"
#include "objects/uverbs_file.h"
#include "poll/engine_wake.h"
#include "process/cancellation.h"
#include "process/emulated_fd.h"
#include "process/log.h"
#include "process/run_dir.h"
#include "rdmacm/rdmacm.h"
#include "requests/daemon_requests.h"
#include "uverbs/uverbs.h"
#include <samehost/peer.h>

HOOKED(ssize_t, write)(int fd, const void *buf, size_t count)
{
	struct uverbs_file *file = uverbs_file_lookup(fd);
	struct rdmacm_file *rdmacm;

	if (file)
		return uverbs_write(file, fd, buf, count);
	rdmacm = rdmacm_lookup(fd);
	if (rdmacm)
		return rdmacm_write(rdmacm, fd, buf, count);
	return REAL(write)(fd, buf, count);
}
HOOK(ssize_t, write, (int fd, const void *buf, size_t count), fd_any(), (fd, buf, count))

HOOKED(int, ioctl)(int fd, unsigned long request, void *arg)
{
	struct uverbs_file *file = uverbs_file_lookup(fd);

	/* The kernel handles other requests, such as FIONBIO, without the driver. */
	if (file && request == RDMA_VERBS_IOCTL)
		return uverbs_ioctl(file, arg);
	if (request == UFFDIO_REGISTER)
		adapter_refuse_copies();
	return REAL(ioctl)(fd, request, arg);
}
HOOK_VARIABLE(int, ioctl, (int fd, unsigned long request, void *arg),
	      fd_any() || request == UFFDIO_REGISTER, (fd, request, arg))

/* Whether a call that closes or replaces a descriptor may concern this library: the program has
 * descriptors of the device, or the engine thread has its eventfd. While a command of another
 * thread runs, the engine thread outlives the program's last descriptor of the device. */
static bool has_descriptors(void)
{
	return fd_any() || atomic_load_explicit(&adapter_thread.wake_fd, memory_order_relaxed) > 0;
}

/*
 * Whether fd is the eventfd of the engine thread, which the program does not know. So close(2)
 * finds that number closed (EBADF), and dup2(2), which would replace the eventfd, finds it in use
 * (EBUSY).
 */
static bool is_engine_wake_fd(int fd)
{
	return engine_wake_fd_within((unsigned int)fd, (unsigned int)fd) >= 0;
}

HOOKED(int, close)(int fd)
{
	if (is_engine_wake_fd(fd)) {
		errno = EBADF;
		return -1;
	}
	fd_remove(fd);
	return REAL(close)(fd);
}
HOOK(int, close, (int fd), has_descriptors(), (fd))

/* Closes the descriptors `first` to `end - 1`. Like closefrom(3) it needs no close_range(2) of the
 * kernel, and is no cancellation point. */
static void close_each(int first, int end)
{
	const int cancel = cancellation_disable();

	for (int fd = first; fd < end; fd++)
		REAL(close)(fd);
	cancellation_restore(cancel);
}

/* Closes the descriptors `first` to `last` except `kept`, which lies between them. Returns and sets
 * errno as close_range(2) does. */
static int close_around(unsigned int first, unsigned int kept, unsigned int last, int flags)
{
	int rc = 0;

	if (first < kept)
		rc = REAL(close_range)(first, kept - 1, flags);
	if (!rc && kept < last)
		rc = REAL(close_range)(kept + 1, last, flags);
	return rc;
}

int close_range(unsigned int first, unsigned int last, int flags)
{
	int kept;

	/* With other flags the call closes nothing: it fails, or only sets close-on-exec. */
	if (flags & ~CLOSE_RANGE_UNSHARE)
		return REAL(close_range)(first, last, flags);
	fd_remove_range(first, last);
	kept = engine_wake_fd_within(first, last);
	if (kept < 0)
		return REAL(close_range)(first, last, flags);
	return close_around(first, (unsigned int)kept, last, flags);
}

void closefrom(int first)
{
	const unsigned int from = first > 0 ? (unsigned int)first : 0;
	int kept;

	fd_remove_range(from, UINT_MAX);
	kept = engine_wake_fd_within(from, UINT_MAX);
	if (kept < 0) {
		REAL(closefrom)(first);
		return;
	}
	close_each((int)from, kept);
	REAL(closefrom)(kept + 1);
}

/* Defines dup(2), dup2(2) or dup3(2). `replaced`: the descriptor that is replaced; -1: none. */
#define DUP(name, parameters, arguments, replaced)                     \
	HOOKED(int, name) parameters                                   \
	{                                                              \
		int new_fd;                                            \
                                                                       \
		if ((replaced) != fd && is_engine_wake_fd(replaced)) { \
			errno = EBUSY;                                 \
			return -1;                                     \
		}                                                      \
		new_fd = REAL(name) arguments;                         \
		fd_duplicated(fd, new_fd);                             \
		return new_fd;                                         \
	}                                                              \
	HOOK(int, name, parameters, has_descriptors(), arguments)

DUP(dup, (int fd), (fd), -1)
DUP(dup2, (int fd, int to), (fd, to), to)
DUP(dup3, (int fd, int to, int flags), (fd, to, flags), to)

#define FCNTL(name)                                                   \
	HOOKED(int, name)(int fd, int command, void *arg)             \
	{                                                             \
		int rc = REAL(name)(fd, command, arg);                \
                                                                      \
		if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) \
			fd_duplicated(fd, rc);                        \
		return rc;                                            \
	}                                                             \
	HOOK_VARIABLE(int, name, (int fd, int command, void *arg), fd_any(), (fd, command, arg))

FCNTL(fcntl)
FCNTL(fcntl64)

/* Refuses RDMA netlink if URXE_DIR is set: libibverbs reads sysfs, and so finds this library's
 * device, only if the kernel has no RDMA netlink. */
HOOKED(int, socket)(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && run_dir_path()) {
		if (!strcmp(program_invocation_short_name, "rdma"))
			log_write("rdma(8) asks the kernel, which does not know this device: use "
				  "'urxe show'");
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return REAL(socket)(domain, type, protocol);
}
HOOK(int, socket, (int domain, int type, int protocol), domain == AF_NETLINK,
     (domain, type, protocol))

/* Does not start a thread or attach to the daemon: programs fork their workers after this. */
static __attribute__((constructor)) void init_library(void)
{
	real_resolve_all();
	log_init();
	main_thread_watch();
}
