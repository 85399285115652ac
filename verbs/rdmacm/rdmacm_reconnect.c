/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/rdmacm_reconnect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "attach/main_thread.h"
#include "process/high_fd.h"
#include "process/run_dir.h"
#include "rdmacm/daemon_socket.h"

/* Once the main thread has ended: interval of checks whether the program has other threads, ms. */
#define LAST_THREAD_MS 20

/* These change only under rdmacm_files_lock. While n_added is not 0, the thread, its epoll set
 * and its pipe stay the same. */
static unsigned int n_added; /* number of files whose `added` is true */
static int epoll_fd = -1;    /* of the files' sockets and the pipe; -1: no thread */
/*
 * An empty pipe. The write end is always ready for EPOLLOUT, which the epoll set watches only to
 * wake or end the thread. If the program closes the write end, the read end hangs up.
 */
static int pipe_fds[2] = {-1, -1};
static int spare_fds[CM_ATTACH_FDS] = {-1, -1}; /* duplicates of epoll_fd */
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

/* Notices the end of the file's daemon, or tries once to connect the file to the next one. True:
 * call again in RECONNECT_INTERVAL_NS. */
static bool check_file(struct rdmacm_file *file)
{
	bool again;

	/* The holder of the lock opens or closes the file, or runs a command and then notices the
	 * daemon's end itself. */
	if (pthread_mutex_trylock(&file->lock))
		return true;
	if (rdmacm_daemon_notice_end(file))
		rdmacm_daemon_lost(file);
	else
		rdmacm_daemon_retry(file);
	again = rdmacm_daemon_is_reconnecting(file);
	pthread_mutex_unlock(&file->lock);
	return again;
}

/*
 * Sets fds[1] to the pipe's read end. False: stop_thread() was called. fds[0], the thread's epoll
 * set, is closed only after the thread's end, so a new thread's epoll set has another number.
 */
static bool thread_goes_on(struct pollfd fds[2])
{
	sigset_t signals;
	bool on;

	rdmacm_lock_files(&signals);
	on = epoll_fd == fds[0].fd;
	fds[1].fd = pipe_fds[0];
	rdmacm_unlock_files(&signals);
	return on;
}

/*
 * Sleeps until a file's daemon ends, or until wake_thread() or stop_thread(); once the main thread
 * has ended, for LAST_THREAD_MS at most. False: the program has closed the thread's descriptors. If
 * it closes the write end of the pipe, poll() looks at the numbers again, and reports a hang-up, or
 * that a number is not open.
 */
static bool wait_for_event(struct pollfd fds[2])
{
	const int timeout = main_thread_ended() ? LAST_THREAD_MS : -1;
	struct epoll_event ev;

	if (poll(fds, 2, timeout) < 0)
		return errno == EINTR;
	if ((fds[0].revents | fds[1].revents) & (POLLHUP | POLLNVAL))
		return false;
	/* Consumes the one-shot event of wake_thread(). */
	(void)epoll_wait(fds[0].fd, &ev, 1, 0);
	return true;
}

static void *reconnect_thread(void *epoll)
{
	struct pollfd fds[2] = {{.fd = (int)(intptr_t)epoll, .events = POLLIN}};
	const struct timespec pause = {.tv_nsec = RECONNECT_INTERVAL_NS};
	struct rdmacm_file *file;
	bool again = false;

	prctl(PR_SET_NAME, "urxe-cm");
	while (thread_goes_on(fds)) {
		if (again)
			nanosleep(&pause, NULL);
		else if (!wait_for_event(fds))
			break;
		main_thread_end_process_if_last();
		again = false;
		for (file = rdmacm_files_first(); file; file = file->next)
			again |= check_file(file);
	}
	return NULL;
}

static int watch_pipe(int op, int epoll, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events};

	return epoll_ctl(epoll, op, fd, &ev);
}

/* Wakes the thread at the end of the main thread, by one event of the pipe. */
static void wake_thread(void)
{
	sigset_t signals;

	rdmacm_lock_files(&signals);
	if (epoll_fd >= 0)
		(void)watch_pipe(EPOLL_CTL_MOD, epoll_fd, pipe_fds[1], EPOLLOUT | EPOLLONESHOT);
	rdmacm_unlock_files(&signals);
}

/* --- Start and end of the thread; with rdmacm_files_lock */

static void close_descriptors(int epoll, const int pipe[2])
{
	const int fds[] = {epoll, pipe[0], pipe[1]};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Closes only descriptors that are still the thread's: the program may have closed a spare one, and
 * use its number itself. */
void rdmacm_reconnect_close_spares(void)
{
	for (int i = 0; i < CM_ATTACH_FDS; i++) {
		if (spare_fds[i] >= 0 && !watch_pipe(EPOLL_CTL_MOD, spare_fds[i], pipe_fds[0], 0))
			close(spare_fds[i]);
		spare_fds[i] = -1;
	}
}

static void open_spares(void)
{
	for (int i = 0; i < CM_ATTACH_FDS; i++)
		if (spare_fds[i] < 0)
			spare_fds[i] = high_fd_duplicate(epoll_fd);
}

void rdmacm_reconnect_keep_spares(void)
{
	sigset_t signals;

	rdmacm_lock_files(&signals);
	if (epoll_fd >= 0)
		open_spares();
	rdmacm_unlock_files(&signals);
}

static void forget_descriptors(void)
{
	epoll_fd = pipe_fds[0] = pipe_fds[1] = -1;
}

void rdmacm_reconnect_in_child(void)
{
	rdmacm_reconnect_close_spares();
	close_descriptors(epoll_fd, pipe_fds);
	forget_descriptors();
	n_added = 0;
	main_thread_fork_child();
}

static int make_descriptors(void)
{
	epoll_fd = high_fd(epoll_create1(EPOLL_CLOEXEC));
	if (epoll_fd < 0 || pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	pipe_fds[0] = high_fd(pipe_fds[0]);
	pipe_fds[1] = high_fd(pipe_fds[1]);
	return watch_pipe(EPOLL_CTL_ADD, epoll_fd, pipe_fds[0], 0) ||
			       watch_pipe(EPOLL_CTL_ADD, epoll_fd, pipe_fds[1], 0)
		       ? -errno
		       : 0;
}

/* Starts the thread. 0 or a negative errno value. The thread inherits the caller's signal mask,
 * which rdmacm_lock_files() has set: so signal handlers run in the program's own threads. */
static int start_thread(void)
{
	int rc = make_descriptors();

	main_thread_watch();
	main_thread_wake_at_end(wake_thread);
	if (!rc)
		rc = -pthread_create(&thread, NULL, reconnect_thread, (void *)(intptr_t)epoll_fd);
	if (!rc) {
		open_spares();
		return 0;
	}
	close_descriptors(epoll_fd, pipe_fds);
	forget_descriptors();
	return rc;
}

/*
 * Releases rdmacm_files_lock, and joins the thread: a program that closes all its descriptors, as
 * by close_range, must not close those of a running thread.
 */
static void stop_thread(const sigset_t *signals)
{
	const int epoll = epoll_fd, pipe[2] = {pipe_fds[0], pipe_fds[1]};
	const pthread_t ended = thread;

	rdmacm_reconnect_close_spares();
	forget_descriptors();
	rdmacm_unlock_files(signals);
	/*
	 * A program that closes its descriptors one by one may have closed these already, which has
	 * ended the thread. The numbers may belong to the program by now.
	 */
	if (watch_pipe(EPOLL_CTL_MOD, epoll, pipe[0], 0) ||
	    watch_pipe(EPOLL_CTL_MOD, epoll, pipe[1], EPOLLOUT)) {
		pthread_detach(ended);
		return;
	}
	pthread_join(ended, NULL);
	close_descriptors(epoll, pipe);
}

int rdmacm_reconnect_add(struct rdmacm_file *file)
{
	sigset_t signals;
	int rc;

	rdmacm_lock_files(&signals);
	rc = n_added ? 0 : start_thread();
	if (!rc) {
		n_added++;
		file->added = true;
		rdmacm_reconnect_watch(file);
	}
	rdmacm_unlock_files(&signals);
	return rc;
}

void rdmacm_reconnect_remove(struct rdmacm_file *file)
{
	sigset_t signals;
	bool was_added;

	rdmacm_lock_files(&signals);
	was_added = file->added;
	file->added = false;
	if (was_added && !--n_added)
		stop_thread(&signals);
	else
		rdmacm_unlock_files(&signals);
}
