/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm_keeper.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "outage.h"

#define LOOK_MS ((int)(OUTAGE_LOOK / 1000000))

/* Taken after a file's lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, rdmacm_file) files = LIST_HEAD_INITIALIZER(files);
static int epoll_fd = -1; /* of their sockets; -1: there is no thread */

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

/* Files are never freed, so one that is closed meanwhile does no harm. */
static struct rdmacm_file *next_file(struct rdmacm_file *file)
{
	pthread_mutex_lock(&lock);
	file = !file ? LIST_FIRST(&files) : file->kept ? LIST_NEXT(file, kept_link) : NULL;
	pthread_mutex_unlock(&lock);
	return file;
}

static void *keeper_thread(void *unused)
{
	const struct timespec pause = {.tv_nsec = OUTAGE_LOOK};
	struct rdmacm_file *file;
	struct epoll_event ev;
	bool more = false;

	(void)unused;
	prctl(PR_SET_NAME, "urxe-cm");
	for (;;) {
		if (more)
			nanosleep(&pause, NULL);
		else if (epoll_wait(epoll_fd, &ev, 1, -1) < 0 && errno != EINTR)
			return NULL;
		more = false;
		for (file = next_file(NULL); file; file = next_file(file))
			more |= look_after(file);
	}
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
	}
	if (epoll_fd >= 0)
		close(epoll_fd);
	epoll_fd = -1;
	pthread_mutex_unlock(&lock);
}

static void init_once(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* --- */

static int start(void)
{
	sigset_t all, old;
	pthread_t thread;
	int rc;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		return -errno;
	/* The program's signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, keeper_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc) {
		pthread_detach(thread);
		return 0;
	}
	close(epoll_fd);
	epoll_fd = -1;
	return -rc;
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
	pthread_mutex_lock(&lock);
	if (file->kept)
		LIST_REMOVE(file, kept_link);
	file->kept = false;
	pthread_mutex_unlock(&lock);
}
