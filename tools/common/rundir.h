/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The run directory: where urxed and the programs that use it find each other's sockets and files.
 *
 *    --run-dir, else $URXE_DIR, else
 *    /run/urxe/NETNS                 root
 *    $XDG_RUNTIME_DIR/urxe/NETNS     other users
 *    /tmp/urxe-UID/NETNS             other users without XDG_RUNTIME_DIR
 *    $HOME/.cache/urxe/NETNS         the same, if another user owns /tmp/urxe-UID
 *
 * NETNS is the inode number of the network namespace: each namespace is a host of its own, even
 * where two namespaces share a file system.
 */
#ifndef URXE_COMMON_RUNDIR_H
#define URXE_COMMON_RUNDIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RUNDIR_MAX   92 /* so that "/urxed.sock" still fits in sockaddr_un.sun_path */
#define RUNDIR_ERROR 256
#define RUNDIR_PID   "urxed.pid"

/*
 * Writes the absolute path of the run directory, which need not exist. `given` is the value of
 * --run-dir or NULL. On error `error` holds a sentence. Logs a line if another user owns
 * /tmp/urxe-UID.
 */
int rundir_path(const char *given, char path[RUNDIR_MAX], char error[RUNDIR_ERROR]);

/* Is it the default directory, named neither by option nor by environment? */
bool rundir_is_default(const char *given);

/* The run directory of root's daemon, which serves all users. */
void rundir_system(char path[RUNDIR_MAX]);

/*
 * Makes the directory with mode 0700 and missing parents with 0755. Refuses a directory that others
 * can write to. Returns 1 if the directory is new, 0 if it existed.
 */
int rundir_create(const char *path, char error[RUNDIR_ERROR]);

/*
 * Locks the directory for one daemon and writes the PID file. Returns the descriptor that holds the
 * lock. -EBUSY: another daemon holds the lock, or has just removed the directory. If the PID file
 * cannot be written, the directory is removed again if `own`.
 */
int rundir_lock(const char *path, bool own, char error[RUNDIR_ERROR]);

/* Lets members of a group enter the directory and use the file `name` in it. */
int rundir_grant_group(const char *path, const char *name, gid_t group, char error[RUNDIR_ERROR]);

/* Removes a file or a whole tree in the directory, without following links. */
int rundir_remove(const char *path, const char *name);

/* Removes the lock and the PID file, and the directory if `own` and empty. */
void rundir_release(const char *path, int lock_fd, bool own);

/* Inode number of this process's network namespace. */
uint64_t rundir_netns(void);

#endif
