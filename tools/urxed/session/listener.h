/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The listening socket urxed.sock in the run directory, to which processes connect. The daemon's
 * main loop calls these functions. */
#ifndef URXE_URXED_SESSION_LISTENER_H
#define URXE_URXED_SESSION_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "urxed/accept_pause.h"
#include "urxed/session/session.h"

#define LISTENER_ERROR 256

struct listener {
	const char *run_dir;
	struct sessions *sessions; /* their epoll set watches fd, with this listener as data */
	int fd;                    /* -1 = closed */
	struct accept_pause pause;
};

/* Listens in run_dir. group: its members may connect, too; 0 = none. Returns 0, or a negative errno
 * value and a sentence in `error`; the caller calls listener_close even then. */
int listener_open(struct listener *l, const char *run_dir, gid_t group, struct sessions *sessions,
		  char error[LISTENER_ERROR]);
/* Removes the socket; does nothing if fd is -1. */
void listener_close(struct listener *l);

/* Accepts pending connections, at most 32; epoll reports further ones again. After an error, such
 * as a lack of descriptors, accepts none for 100 ms (accept_pause.h). */
void listener_event(struct listener *l, uint64_t now);
/*
 * Accepts connections again when the 100 ms after an error are over. Returns as accept_pause_tick.
 */
uint64_t listener_tick(struct listener *l, uint64_t now);

/*
 * For a private daemon without sessions: moves the socket's file away, so that no new process can
 * connect, and accepts the connections made just before. Returns true if there is still no session;
 * otherwise puts the file back and returns false.
 */
bool listener_retire(struct listener *l, uint64_t now);

#endif
