/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens, closes and forks open files of rdma_cm. */
#include "rdmacm/rdmacm_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "engine/clock.h"
#include "process/cancellation.h"
#include "process/fork_handlers.h"
#include "process/high_fd.h"
#include "process/settings.h"
#include "rdmacm/daemon_socket.h"
#include "rdmacm/event_socket.h"
#include "rdmacm/ids.h"
#include "rdmacm/kernel.h"
#include "rdmacm/rdmacm_reconnect.h"
#include "rdmacm/reply_cache.h"

static pthread_mutex_t rdmacm_files_lock = PTHREAD_MUTEX_INITIALIZER;
/* The list's first file; files never leave the list. */
static _Atomic(struct rdmacm_file *) first_file;

/* Blocks all signals but SIGSYS, by which a filter of seccomp traps a system call: if a thread has
 * blocked it, the trap kills the process. If the program has blocked SIGSYS, it stays blocked. */
static void block_signals(sigset_t *signals)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_BLOCK, &all, signals);
}

void rdmacm_lock_files(sigset_t *signals)
{
	block_signals(signals);
	pthread_mutex_lock(&rdmacm_files_lock);
}

void rdmacm_unlock_files(const sigset_t *signals)
{
	pthread_mutex_unlock(&rdmacm_files_lock);
	pthread_sigmask(SIG_SETMASK, signals, NULL);
}

struct rdmacm_file *rdmacm_files_first(void)
{
	return atomic_load_explicit(&first_file, memory_order_acquire);
}

/* --- Locks */

static void init_lock(struct rdmacm_file *file)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&file->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&file->reconnected, &attr);
	pthread_condattr_destroy(&attr);
}

/* Waits for a busy lock without holding the other one, so the two locks need no order. */
void rdmacm_lock_both(struct rdmacm_file *a, struct rdmacm_file *b)
{
	struct rdmacm_file *busy = a, *other = b;

	pthread_mutex_lock(&busy->lock);
	while (a != b && pthread_mutex_trylock(&other->lock)) {
		pthread_mutex_unlock(&busy->lock);
		busy = other;
		other = busy == a ? b : a;
		pthread_mutex_lock(&busy->lock);
	}
}

void rdmacm_unlock_both(struct rdmacm_file *a, struct rdmacm_file *b)
{
	pthread_mutex_unlock(&a->lock);
	if (a != b)
		pthread_mutex_unlock(&b->lock);
}

/* --- fork */

/* Calls of fork within each other: a signal handler that interrupts fork may fork itself. Only the
 * outermost call takes rdmacm_files_lock. */
static __thread unsigned int forks_within __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
	sigset_t signals;

	block_signals(&signals);
	if (!forks_within++)
		pthread_mutex_lock(&rdmacm_files_lock);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
}

static void end_fork(void)
{
	sigset_t signals;

	if (!forks_within)
		return;
	block_signals(&signals);
	if (!--forks_within)
		pthread_mutex_unlock(&rdmacm_files_lock);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
}

/*
 * The child initialises the locks, which other threads of the parent may hold, and only closes the
 * files. A command that a signal handler has interrupted ends in the child.
 */
static void in_child(void)
{
	struct rdmacm_file *file;
	int cancel;

	if (!forks_within)
		return;
	cancel = cancellation_disable();
	for (file = rdmacm_files_first(); file; file = file->next) {
		init_lock(file);
		file->added = false;
		file->opening += 2;
		rdmacm_daemon_fork_child(file);
	}
	rdmacm_reconnect_in_child();
	end_fork();
	fd_set_owner();
	cancellation_restore(cancel);
}

static const struct fork_handlers fork_handlers = {before_fork, end_fork, in_child};

/* --- Closing */

static void release_file(struct fd_object *object)
{
	struct rdmacm_file *file = (struct rdmacm_file *)object;
	sigset_t signals;

	pthread_mutex_lock(&file->lock);
	file->opening++;
	rdmacm_daemon_disconnect(file);
	rdmacm_reply_cache_free(file);
	rdmacm_ids_free(file);
	rdmacm_close_fd(&file->event_set);
	rdmacm_close_fd(&file->kernel);
	pthread_cond_broadcast(&file->reconnected);
	pthread_mutex_unlock(&file->lock);
	rdmacm_lock_files(&signals);
	file->in_use = false;
	rdmacm_unlock_files(&signals);
}

/* --- Locks by attempts */

#define PAUSE_NS 20000 /* between two attempts */

bool rdmacm_lock_until(struct rdmacm_file *file, uint64_t deadline)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	while (pthread_mutex_trylock(&file->lock)) {
		if (clock_monotonic() >= deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* --- Opening */

bool rdmacm_open_kernel(struct rdmacm_file *file)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (file->kernel >= 0)
		return true;
	file->kernel = rdmacm_kernel_open();
	if (file->kernel >= 0 && epoll_ctl(file->event_set, EPOLL_CTL_ADD, file->kernel, &ev))
		rdmacm_close_fd(&file->kernel);
	if (file->kernel < 0)
		return false;
	rdmacm_event_wake(file);
	return true;
}

/* Adds a new file, which is closed, to the list. NULL: no memory. */
static struct rdmacm_file *make_file(void)
{
	struct rdmacm_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->fd = (struct fd_object){.kind = FD_RDMACM, .release = release_file};
	file->socket = file->event_set = file->event_reader = file->event_writer = -1;
	file->kernel = file->reserve = -1;
	init_lock(file);
	file->next = rdmacm_files_first();
	atomic_store_explicit(&first_file, file, memory_order_release);
	return file;
}

/* Reuses a closed file, or adds a new one to the list. NULL: no memory. */
static struct rdmacm_file *alloc_file(void)
{
	struct rdmacm_file *file;
	sigset_t signals;

	rdmacm_lock_files(&signals);
	file = rdmacm_files_first();
	while (file && file->in_use)
		file = file->next;
	if (!file)
		file = make_file();
	if (file)
		file->in_use = true;
	rdmacm_unlock_files(&signals);
	return file;
}

/*
 * Makes the program's descriptor *fd, an epoll set, and the file's own descriptors. The program
 * waits at an epoll set, so that the daemon's socket in the set can change while the program's
 * descriptor stays the same. 0 or a negative errno value.
 */
static int make_descriptors(struct rdmacm_file *file, int *fd)
{
	*fd = epoll_create1(EPOLL_CLOEXEC);
	if (*fd < 0)
		return -errno;
	file->event_set = high_fd_duplicate(*fd);
	if (file->event_set < 0)
		return -errno;
	file->n_waiting = 0;
	(void)rdmacm_open_kernel(file);
	return 0;
}

static int set_flags(int fd, int flags)
{
	if (flags & O_NONBLOCK && fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return !(flags & O_CLOEXEC) && fcntl(fd, F_SETFD, 0) ? -errno : 0;
}

/* Connects the file to the daemon, and makes *fd for the program. 0 or a negative errno value.
 * Takes file->lock, because the reconnecting thread sees the file already. */
static int open_file(struct rdmacm_file *file, int flags, uint64_t deadline, int *fd)
{
	int rc;

	pthread_mutex_lock(&file->lock);
	file->opening++;
	file->pid = getpid();
	rc = make_descriptors(file, fd);
	if (!rc)
		rc = rdmacm_daemon_connect(file, deadline);
	pthread_mutex_unlock(&file->lock);
	return rc ? rc : set_flags(*fd, flags);
}

int rdmacm_open_until(int flags, uint64_t deadline)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rdmacm_file *file;
	int fd = -1, rc;

	settings_read();
	fork_handlers_enable(FORK_RDMACM, &fork_handlers);
	pthread_once(&once, fd_set_owner);
	file = alloc_file();
	if (!file)
		return -ENOMEM;
	rc = open_file(file, flags, deadline, &fd);
	if (!rc)
		rc = fd_install(fd, &file->fd);
	if (!rc)
		return fd;
	rdmacm_close_fd(&fd);
	release_file(&file->fd);
	return rc;
}

int rdmacm_open(int flags)
{
	return rdmacm_open_until(flags, UINT64_MAX);
}
