/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/accept_pause.h"

#include <errno.h>
#include <string.h>

#define PAUSE_NS 100000000ull

void accept_pause_begin(struct accept_pause *p, uint64_t now, int error)
{
	if (error == EAGAIN || error == EINTR || error == ECONNABORTED)
		return;
	log_ratelimited(&p->log, now, "cannot accept a connection: %s", strerror(error));
	accept_pause_until(p, now + PAUSE_NS);
}

void accept_pause_until(struct accept_pause *p, uint64_t until)
{
	struct epoll_event none = {.data = p->watch.data};

	epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, p->fd, &none);
	p->until = until;
}

void accept_pause_end(struct accept_pause *p)
{
	if (!p->until)
		return;
	p->until = 0;
	epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, p->fd, &p->watch);
}

uint64_t accept_pause_tick(struct accept_pause *p, uint64_t now)
{
	if (p->until <= now)
		accept_pause_end(p);
	return p->until ? p->until : UINT64_MAX;
}
