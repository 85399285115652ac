/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/rdmacm_reconnect.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "attach/main_thread.h"
#include "process/high_fd.h"
#include "process/run_dir.h"
#include "rdmacm/daemon_socket.h"

/* Interval of looks whether the program has other threads, after the end of its main thread. */
#define LAST_THREAD_MS 20

/* Under rdmacm_files_lock; constant while any file is watched. */
static unsigned int n_watched;
static int epoll_fd = -1; /* of the files' sockets and end_fd; -1: no thread */
/* An eventfd that is always readable; watched only to wake or end the thread. */
static int end_fd = -1;
static pthread_t thread;

void rdmacm_reconnect_watch(struct rdmacm_file *file)
{
	struct epoll_event ev = {.events = EPOLLRDHUP};

	(void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, file->socket, &ev);
}

void rdmacm_reconnect_unwatch(struct rdmacm_file *file)
{
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, file->socket, NULL);
}

/* --- The thread */

/* True: call again in RECONNECT_INTERVAL_NS. */
static bool check_file(struct rdmacm_file *file)
{
	bool again;

	/* The lock's owner runs a command and notices the daemon's end itself, or opens or closes.
	 */
	if (pthread_mutex_trylock(&file->lock))
		return true;
	if (rdmacm_daemon_hung_up(file))
		rdmacm_daemon_lost(file);
	else
		rdmacm_daemon_retry(file);
	again = rdmacm_daemon_is_reconnecting(file);
	pthread_mutex_unlock(&file->lock);
	return again;
}

/* stop_thread() closes the descriptor after the thread's end, so no other thread has its number. */
static bool thread_goes_on(int own_epoll)
{
	sigset_t signals;
	bool on;

	rdmacm_lock_files(&signals);
	on = epoll_fd == own_epoll;
	rdmacm_unlock_files(&signals);
	return on;
}

/* Only here the thread may be cancelled: elsewhere it has locks. */
static int wait_for_event(int own_epoll)
{
	const int timeout = main_thread_ended() ? LAST_THREAD_MS : -1;
	struct epoll_event ev;
	int n;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	n = epoll_wait(own_epoll, &ev, 1, timeout);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return n;
}

static void *reconnect_thread(void *epoll)
{
	const int own_epoll = (int)(intptr_t)epoll;
	const struct timespec pause = {.tv_nsec = RECONNECT_INTERVAL_NS};
	struct rdmacm_file *file;
	bool again = false;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	prctl(PR_SET_NAME, "urxe-cm");
	while (thread_goes_on(own_epoll)) {
		if (again)
			nanosleep(&pause, NULL);
		else if (wait_for_event(own_epoll) < 0 && errno != EINTR)
			break;
		main_thread_end_process_if_last();
		again = false;
		for (file = rdmacm_files_first(); file; file = file->next)
			again |= check_file(file);
	}
	return NULL;
}

/* At the end of the main thread: end_fd ends one wait. */
static void wake_thread(void)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT};
	sigset_t signals;

	rdmacm_lock_files(&signals);
	if (epoll_fd >= 0)
		(void)epoll_ctl(epoll_fd, EPOLL_CTL_MOD, end_fd, &ev);
	rdmacm_unlock_files(&signals);
}

/* --- Its start and end; with rdmacm_files_lock */

static void close_descriptors(int epoll, int end)
{
	if (epoll >= 0)
		close(epoll);
	if (end >= 0)
		close(end);
}

void rdmacm_reconnect_in_child(void)
{
	close_descriptors(epoll_fd, end_fd);
	epoll_fd = end_fd = -1;
	n_watched = 0;
	main_thread_fork_child();
}

static int make_descriptors(void)
{
	struct epoll_event ev = {.events = 0};

	epoll_fd = high_fd(epoll_create1(EPOLL_CLOEXEC));
	end_fd = high_fd(eventfd(1, EFD_CLOEXEC));
	return epoll_fd < 0 || end_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, end_fd, &ev)
		       ? -errno
		       : 0;
}

/* The thread blocks all signals, as its maker does: handlers run in the program's own threads. */
static int start_thread(void)
{
	int rc = make_descriptors();

	main_thread_watch();
	main_thread_wake_at_end(wake_thread);
	if (!rc)
		rc = -pthread_create(&thread, NULL, reconnect_thread, (void *)(intptr_t)epoll_fd);
	if (!rc)
		return 0;
	close_descriptors(epoll_fd, end_fd);
	epoll_fd = end_fd = -1;
	return rc;
}

/*
 * Frees the lock. A program that closes all its descriptors, as by close_range, must not close
 * those of a running thread: hence the join.
 */
static void stop_thread(const sigset_t *signals)
{
	const int epoll = epoll_fd, end = end_fd;
	const pthread_t ended = thread;
	struct epoll_event ev = {.events = EPOLLIN};
	bool closed;

	epoll_fd = end_fd = -1;
	rdmacm_unlock_files(signals);
	/*
	 * A program that closes its descriptors one by one may have closed these two already. Then
	 * they do not wake the thread, and both numbers may belong to the program by now.
	 */
	closed = epoll_ctl(epoll, EPOLL_CTL_MOD, end, &ev);
	if (closed)
		pthread_cancel(ended);
	pthread_join(ended, NULL);
	if (!closed)
		close_descriptors(epoll, end);
}

int rdmacm_reconnect_add(struct rdmacm_file *file)
{
	sigset_t signals;
	int rc;

	rdmacm_lock_files(&signals);
	rc = n_watched ? 0 : start_thread();
	if (!rc) {
		n_watched++;
		file->watched = true;
		rdmacm_reconnect_watch(file);
	}
	rdmacm_unlock_files(&signals);
	return rc;
}

void rdmacm_reconnect_remove(struct rdmacm_file *file)
{
	sigset_t signals;
	bool was_watched;

	rdmacm_lock_files(&signals);
	was_watched = file->watched;
	file->watched = false;
	if (was_watched && !--n_watched)
		stop_thread(&signals);
	else
		rdmacm_unlock_files(&signals);
}
