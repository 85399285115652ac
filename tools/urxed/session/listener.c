/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/rundir.h"
#include "urxed/epoll_watch.h"
#include "urxed/privilege/fd_guard.h"

/* Most connections that one event accepts. */
#define ACCEPTS 32

#define RETIRED_NAME VNIC_SOCKET_NAME ".leaving"

int listener_open(struct listener *l, const char *run_dir, gid_t group, struct sessions *sessions,
		  char error[LISTENER_ERROR])
{
	int rc;

	*l = (struct listener){.run_dir = run_dir, .sessions = sessions};
	rundir_remove(run_dir, RETIRED_NAME);
	l->fd = vnic_server_listen(run_dir);
	if (l->fd < 0) {
		rc = l->fd;
		l->fd = -1;
		snprintf(error, LISTENER_ERROR, "cannot listen in %s: %s", run_dir, strerror(-rc));
		return rc;
	}
	rc = group ? rundir_grant_group(run_dir, VNIC_SOCKET_NAME, group, error) : 0;
	l->pause = (struct accept_pause){.epoll_fd = sessions->epoll_fd,
					 .fd = l->fd,
					 .watch = {.events = EPOLLIN, .data.ptr = l}};
	return rc ? rc : epoll_watch_add(sessions->epoll_fd, l->fd, l, error);
}

void listener_close(struct listener *l)
{
	if (l->fd < 0)
		return;
	rundir_remove(l->run_dir, VNIC_SOCKET_NAME);
	rundir_remove(l->run_dir, RETIRED_NAME);
	fd_guard_close_listener(l->fd);
	l->fd = -1;
}

void listener_event(struct listener *l, uint64_t now)
{
	uint32_t n = 0;
	int rc;

	/* Accepts a limited number, because clients that connect without end must not stop the
	 * daemon; the next event accepts the rest. */
	do
		rc = session_accept(l->sessions, l->fd);
	while ((!rc || rc == -ECONNABORTED || rc == -EINTR) && ++n < ACCEPTS);
	if (n < ACCEPTS)
		accept_pause_begin(&l->pause, now, -rc);
}

uint64_t listener_tick(struct listener *l, uint64_t now)
{
	return accept_pause_tick(&l->pause, now);
}

bool listener_retire(struct listener *l, uint64_t now)
{
	char name[RUNDIR_MAX + sizeof(VNIC_SOCKET_NAME) + 1],
		retired[RUNDIR_MAX + sizeof(RETIRED_NAME) + 1];
	const bool lost = rundir_is_lost(l->run_dir);

	snprintf(name, sizeof(name), "%s/" VNIC_SOCKET_NAME, l->run_dir);
	snprintf(retired, sizeof(retired), "%s/" RETIRED_NAME, l->run_dir);
	if (!lost)
		rename(name, retired);
	listener_event(l, now);
	if (!l->sessions->n)
		return true;
	if (!lost)
		rename(retired, name);
	return false;
}
