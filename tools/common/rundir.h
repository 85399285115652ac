/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directory in which a daemon and its clients meet.
 *
 *   --run-dir, else $URXE_DIR, else
 *   /run/urxe/NETNS                 root
 *   $XDG_RUNTIME_DIR/urxe/NETNS     anyone else
 *   /tmp/urxe-UID/NETNS             anyone else, without XDG_RUNTIME_DIR
 *
 * NETNS is the inode number of the network namespace: two daemons in two
 * namespaces are two hosts, also where they share a file system.
 */
#ifndef URXE_COMMON_RUNDIR_H
#define URXE_COMMON_RUNDIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RUNDIR_MAX   92 /* with "/urxed.sock" it must fit sockaddr_un.sun_path */
#define RUNDIR_ERROR 256
#define RUNDIR_PID   "urxed.pid"

/*
 * Finds the directory's absolute path; `given` is --run-dir's value or NULL. It
 * need not exist. On error `error` gets one sentence.
 */
int rundir_path(const char *given, char path[RUNDIR_MAX], char error[RUNDIR_ERROR]);

/* Whether it is the default: neither option nor environment names another. */
bool rundir_is_default(const char *given);

/* The directory of root's daemon, the one for all users. */
void rundir_system(char path[RUNDIR_MAX]);

/*
 * Makes it with mode 0700 where it is not there, parents with 0755, and sees to it that
 * it is a directory that nobody else can write to. 1: it is new; 0: it was there.
 */
int rundir_create(const char *path, char error[RUNDIR_ERROR]);

/*
 * Locks the directory for one daemon and writes the PID file; the descriptor is
 * the lock. -EBUSY: another daemon has it, or has left with it. Where the PID file cannot
 * be written, the directory goes again if it is the daemon's own.
 */
int rundir_lock(const char *path, bool own, char error[RUNDIR_ERROR]);

/* Lets a group's members pass to what is in the directory, and use the file `name` in it. */
int rundir_grant_group(const char *path, const char *name, gid_t group, char error[RUNDIR_ERROR]);

/* Removes a file or a whole tree below the directory, not following links. */
int rundir_remove(const char *path, const char *name);

/* Removes the lock, the PID file and, where it is the daemon's own and empty, the directory. */
void rundir_release(const char *path, int lock_fd, bool own);

/* Inode number of this process's network namespace. */
uint64_t rundir_netns(void);

#endif
