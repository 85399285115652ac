/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long the device process leaves a daemon alone that has not answered or has refused. It asks a
 * later daemon at once, because that one waits for claims of leases for 3 s only. Times are in ns
 * of CLOCK_MONOTONIC.
 */
#ifndef URXE_VM_HOST_DAEMON_PAUSE_H
#define URXE_VM_HOST_DAEMON_PAUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * The file of the daemon's socket for sessions, which each daemon makes anew. The inode alone does
 * not tell two daemons apart: ext4 gives the number of a removed file to the next one.
 */
struct daemon_file {
	uint64_t inode;          /* 0: there is none */
	struct timespec changed; /* st_ctim */
};

/* Zeroed: there is no pause. */
struct daemon_pause {
	uint64_t until;
	struct daemon_file file; /* of the daemon that is left alone */
};

/* Returns the present socket file of the daemon of run_dir. Call it before asking the daemon:
 * afterwards the file may be a later daemon's. */
struct daemon_file daemon_file_look(const char *run_dir);
/* Whether the pause goes on: it has not ended, and the daemon is still the same. */
bool daemon_pause_lasts(const struct daemon_pause *pause, const char *run_dir, uint64_t now);

#endif
