/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The socket in the run directory by which clients come to the daemon. */
#ifndef URXE_URXED_SESSION_LISTENER_H
#define URXE_URXED_SESSION_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "urxed/session/session.h"

#define LISTENER_ERROR 256

struct listener {
	const char *run_dir;
	struct sessions
		*sessions;     /* it is watched in their epoll set, the listener itself as data */
	int fd;                /* -1 = closed */
	uint64_t accept_after; /* 0 = the socket is watched */
};

/*
 * Listens in run_dir, for the group's members too if that is not 0. On error `error` has
 * one sentence, and listener_close is still to be called.
 */
int listener_open(struct listener *l, const char *run_dir, gid_t group, struct sessions *sessions,
		  char error[LISTENER_ERROR]);
/* Removes the socket; nothing where fd is -1. */
void listener_close(struct listener *l);

/* Takes all connections that wait. */
void listener_event(struct listener *l, uint64_t now);
/* Returns when to call again; UINT64_MAX = not for the sake of time. */
uint64_t listener_tick(struct listener *l, uint64_t now);

/*
 * Somebody may be connecting right now. This takes the socket out of sight, so that nobody
 * new can, and then those that came just before; if there are any, it is put back. True:
 * there is no client, and none can come.
 */
bool listener_retire(struct listener *l, uint64_t now);

#endif
