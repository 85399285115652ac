/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/reconnect.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "outage.h"

#define LOOK_MS ((int)(OUTAGE_LOOK / 1000000))

/* Taken after a file's lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, rdmacm_file) files = LIST_HEAD_INITIALIZER(files);
static int epoll_fd = -1; /* of their sockets and of the bell; -1: there is no thread */
static int bell = -1;     /* has always rung; who listens for it is to end */
static pthread_t thread;

void rdmacm_keeper_watch(struct rdmacm_file *file)
{
	struct epoll_event ev = {.events = EPOLLRDHUP};

	(void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, file->socket, &ev);
}

void rdmacm_keeper_unwatch(struct rdmacm_file *file)
{
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, file->socket, NULL);
}

/* True: there is more to do for it. */
static bool look_after(struct rdmacm_file *file)
{
	bool more;

	/* Who has the lock has a command under way, and notices by itself, or opens or closes it.
	 */
	if (pthread_mutex_trylock(&file->lock))
		return true;
	if (rdmacm_link_hung(file))
		rdmacm_link_lost(file);
	else if (file->lost_at && file->socket < 0 && file->bell >= 0)
		rdmacm_link_look(file);
	more = file->lost_at && file->socket < 0 && file->bell >= 0;
	pthread_mutex_unlock(&file->lock);
	return more;
}

/* Its descriptor is not closed before it has ended, so no other thread has the number. */
static bool goes_on(int own_epoll)
{
	bool on;

	pthread_mutex_lock(&lock);
	on = epoll_fd == own_epoll;
	pthread_mutex_unlock(&lock);
	return on;
}

/* Files are never freed, so one that is closed meanwhile does no harm. */
static struct rdmacm_file *next_file(struct rdmacm_file *file)
{
	pthread_mutex_lock(&lock);
	file = !file ? LIST_FIRST(&files) : file->kept ? LIST_NEXT(file, kept_link) : NULL;
	pthread_mutex_unlock(&lock);
	return file;
}

static void *keeper_thread(void *epoll)
{
	const int own_epoll = (int)(intptr_t)epoll;
	const struct timespec pause = {.tv_nsec = OUTAGE_LOOK};
	struct rdmacm_file *file;
	struct epoll_event ev;
	bool more = false;

	prctl(PR_SET_NAME, "urxe-cm");
	while (goes_on(own_epoll)) {
		if (more)
			nanosleep(&pause, NULL);
		else if (epoll_wait(own_epoll, &ev, 1, -1) < 0 && errno != EINTR)
			break;
		more = false;
		for (file = next_file(NULL); file; file = next_file(file))
			more |= look_after(file);
	}
	return NULL;
}

static void close_all(int epoll, int event)
{
	if (epoll >= 0)
		close(epoll);
	if (event >= 0)
		close(event);
}

/* --- The child of a fork has no thread, and the files are its parent's. */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	struct rdmacm_file *file;

	while ((file = LIST_FIRST(&files))) {
		LIST_REMOVE(file, kept_link);
		file->kept = false;
		/* Another thread of the parent's may have it. */
		rdmacm_file_unlocked(file);
	}
	close_all(epoll_fd, bell);
	epoll_fd = bell = -1;
	pthread_mutex_unlock(&lock);
	fd_owner_is_me();
}

static void init_once(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
	fd_owner_is_me();
}

/* --- */

static int make_fds(void)
{
	struct epoll_event ev = {.events = 0};

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	bell = eventfd(1, EFD_CLOEXEC);
	return epoll_fd < 0 || bell < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, bell, &ev) ? -errno
											 : 0;
}

static int make_thread(void)
{
	sigset_t all, old;
	int rc;

	/* The program's signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, keeper_thread, (void *)(intptr_t)epoll_fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

static int start(void)
{
	int rc = make_fds();

	if (!rc)
		rc = make_thread();
	if (!rc)
		return 0;
	close_all(epoll_fd, bell);
	epoll_fd = bell = -1;
	return rc;
}

/*
 * With the lock, which it gives back. A program that closes all that it has, as by close_range,
 * does not find the thread at it: its descriptors are gone first.
 */
static void stop(void)
{
	const int epoll = epoll_fd, event = bell;
	const pthread_t ended = thread;
	struct epoll_event ev = {.events = EPOLLIN};

	epoll_fd = bell = -1;
	pthread_mutex_unlock(&lock);
	/*
	 * Who closes descriptors one by one may have closed these before. Then nothing wakes the
	 * thread, and the numbers may be others' by now.
	 */
	if (epoll_ctl(epoll, EPOLL_CTL_MOD, event, &ev)) {
		pthread_detach(ended);
		return;
	}
	pthread_join(ended, NULL);
	close_all(epoll, event);
}

int rdmacm_keeper_add(struct rdmacm_file *file)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc;

	pthread_once(&once, init_once);
	pthread_mutex_lock(&lock);
	rc = epoll_fd < 0 ? start() : 0;
	if (!rc) {
		LIST_INSERT_HEAD(&files, file, kept_link);
		file->kept = true;
		rdmacm_keeper_watch(file);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void rdmacm_keeper_remove(struct rdmacm_file *file)
{
	bool was_kept;

	pthread_mutex_lock(&lock);
	was_kept = file->kept;
	if (was_kept)
		LIST_REMOVE(file, kept_link);
	file->kept = false;
	if (was_kept && LIST_EMPTY(&files))
		stop();
	else
		pthread_mutex_unlock(&lock);
}
