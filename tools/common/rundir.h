/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The run directory: where urxed and the programs that use it find each other's sockets and files.
 *
 *    --run-dir, else $URXE_DIR, else
 *    /run/urxe/NETNS                 root that owns it or may make it
 *    $XDG_RUNTIME_DIR/urxe/NETNS     other users
 *    /tmp/urxe-UID/NETNS             other users without XDG_RUNTIME_DIR
 *    $HOME/.cache/urxe/NETNS         the same, if another user owns /tmp/urxe-UID
 *
 * Root of a user namespace may not make /run/urxe on its host, and counts as another user there.
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
 * --run-dir or NULL. Returns 0, or a negative errno value and a sentence in `error`. Logs a line if
 * it chooses $HOME/.cache because another user owns /tmp/urxe-UID.
 */
int rundir_path(const char *given, char path[RUNDIR_MAX], char error[RUNDIR_ERROR]);

/* Is the run directory the default one: no --run-dir (`given` is NULL) and no URXE_DIR? */
bool rundir_is_default(const char *given);

/* Writes the default run directory of root's daemon, which may serve all users. */
void rundir_system(char path[RUNDIR_MAX]);

/*
 * Makes the directory with mode 0711 and missing parents with 0755. -EPERM: the directory existed,
 * and another user owns it or others can write to it. -EEXIST: the directory has sys, dev, dpdk or
 * urxed.log, which urxed would delete, but no urxed.lock: no urxed has made them. Returns 1 if the
 * directory is new, 0 if it existed, or a negative errno value and a sentence in `error`.
 */
int rundir_create(const char *path, char error[RUNDIR_ERROR]);

/*
 * Locks the directory for this daemon, also against systemd-tmpfiles(8), and writes the PID file.
 * Returns the descriptor that holds the lock. On error, `error` has a sentence; -EBUSY: another
 * daemon holds the lock, or has just removed the directory. `own`: urxed may remove the directory,
 * and does so if the PID file cannot be written.
 */
int rundir_lock(const char *path, bool own, char error[RUNDIR_ERROR]);

/*
 * Lets members of a group enter the directory, and read and write the file `name` in it. Returns 0,
 * or a negative errno value and a sentence in `error`.
 */
int rundir_grant_group(const char *path, const char *name, gid_t group, char error[RUNDIR_ERROR]);

/* Whether the directory that this daemon has locked was removed, and another daemon has locked a
 * new one of that name. */
bool rundir_is_lost(const char *path);

/*
 * Removes a file or a whole tree in the directory, without following links. Returns 0, also if
 * there is none, or a negative errno value. -ESTALE: the directory is lost (rundir_is_lost).
 */
int rundir_remove(const char *path, const char *name);

/*
 * Removes the PID file, and closes lock_fd. Removes the lock file, too, unless the directory still
 * has sys/: the lock file tells the next daemon that a daemon made sys/. If `own`, also removes the
 * directory if it is empty, and then the parent of a default run directory, if that is empty.
 */
void rundir_release(const char *path, int lock_fd, bool own);

/* Inode number of this process's network namespace; 0: unknown, because /proc is missing. */
uint64_t rundir_netns(void);
/*
 * Inode number of this process's PID namespace; 0: unknown. The PIDs in a daemon's reports are
 * those of the daemon's namespace.
 */
uint64_t rundir_pidns(void);

#endif
