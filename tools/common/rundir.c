/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

#define LOCK_NAME "urxed.lock"

static int held_lock = -1; /* descriptor of this daemon's lock file */
static int held_dir = -1;  /* descriptor of its run directory */

static uint64_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

uint64_t rundir_netns(void)
{
	return inode_of("/proc/self/ns/net");
}

uint64_t rundir_pidns(void)
{
	return inode_of("/proc/self/ns/pid");
}

static int join_run_dir_path(char path[RUNDIR_MAX], char error[RUNDIR_ERROR], const char *dir,
			     const char *name)
{
	int n = snprintf(path, RUNDIR_MAX, "%s%s%s", dir, *name ? "/" : "", name);

	if (n < RUNDIR_MAX)
		return 0;
	snprintf(
		error, RUNDIR_ERROR,
		"the run directory's path is longer than the %d bytes that a UNIX socket leaves it",
		RUNDIR_MAX - 1);
	return -ENAMETOOLONG;
}

/*
 * Removes trailing slashes, because callers compare paths, and look for the parent before the last
 * slash.
 */
static void cut_trailing_slashes(char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
}

/* Writes the absolute form of `given` to path, because the daemon changes its working directory.
 * Returns 0, or a negative errno value and a sentence in `error`. */
static int make_absolute(const char *given, char path[RUNDIR_MAX], char error[RUNDIR_ERROR])
{
	char cwd[PATH_MAX];

	if (given[0] == '/')
		return join_run_dir_path(path, error, given, "");
	if (!getcwd(cwd, sizeof(cwd))) {
		snprintf(error, RUNDIR_ERROR, "the working directory is unknown: %s",
			 strerror(errno));
		return -errno;
	}
	return join_run_dir_path(path, error, cwd, given);
}

/* Writes the parent of the run directories of an ordinary user without XDG_RUNTIME_DIR. */
static void home_in_tmp(char *dir, size_t size)
{
	snprintf(dir, size, "/tmp/urxe-%u", (unsigned)geteuid());
}

/*
 * Whether another user owns `dir`, and sets *owner to that user. Any user may create the name in
 * /tmp, but only its owner and root can remove it.
 */
static bool is_taken(const char *dir, uid_t *owner)
{
	struct stat st;

	if (lstat(dir, &st) || st.st_uid == geteuid())
		return false;
	*owner = st.st_uid;
	return true;
}

/*
 * Sets dir to $HOME/.cache/urxe, for a user whose /tmp/urxe-UID another user has taken. False:
 * $HOME does not name a directory of the user, or its path is too long.
 */
static bool home_in_cache(char *dir, size_t size)
{
	const char *home = getenv("HOME");
	struct stat st;

	if (!home || home[0] != '/' || stat(home, &st) || !S_ISDIR(st.st_mode) ||
	    st.st_uid != geteuid())
		return false;
	return snprintf(dir, size, "%s/.cache/urxe", home) < (int)size;
}

/* Sets dir to a parent for the user's run directories that no other user can keep from this user.
 * Returns 0, or -EPERM and a sentence in `error`. */
static int find_own_home(char *dir, size_t size, char error[RUNDIR_ERROR])
{
	char taken[32];
	uid_t owner;

	home_in_tmp(dir, size);
	if (!is_taken(dir, &owner))
		return 0;
	home_in_tmp(taken, sizeof(taken));
	if (home_in_cache(dir, size)) {
		log_line("%s belongs to user %u: using %s instead", taken, (unsigned)owner, dir);
		return 0;
	}
	snprintf(error, RUNDIR_ERROR,
		 "%s belongs to user %u, and $HOME is not a directory of this user: set "
		 "XDG_RUNTIME_DIR, or choose a --run-dir",
		 taken, (unsigned)owner);
	return -EPERM;
}

/* The directory that the user names by option or environment; NULL: none. */
static const char *named_by_user(const char *given)
{
	const char *env = getenv("URXE_DIR");

	return !given && env && *env ? env : given;
}

bool rundir_is_default(const char *given)
{
	return !named_by_user(given);
}

void rundir_system(char path[RUNDIR_MAX])
{
	snprintf(path, RUNDIR_MAX, "/run/urxe/%llu", (unsigned long long)rundir_netns());
}

/*
 * May this process make the directory, or has its user made it? Root of a user namespace may not
 * write to the host's /run, and root of a container may have read-only files.
 */
static bool can_have(const char *path)
{
	char dir[RUNDIR_MAX];
	struct stat st;

	if (!lstat(path, &st))
		return st.st_uid == geteuid();
	snprintf(dir, sizeof(dir), "%s", path);
	do
		*strrchr(dir, '/') = '\0';
	while (*dir && access(dir, F_OK));
	return !eaccess(*dir ? dir : "/", W_OK);
}

int rundir_path(const char *given, char path[RUNDIR_MAX], char error[RUNDIR_ERROR])
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char netns[24], dir[PATH_MAX];
	int rc = 0;

	if (given && !*given) {
		snprintf(error, RUNDIR_ERROR, "the run directory's name is empty");
		return -EINVAL;
	}
	given = named_by_user(given);
	if (given) {
		rc = make_absolute(given, path, error);
		if (!rc)
			cut_trailing_slashes(path);
		return rc;
	}

	rundir_system(path);
	if (geteuid() == 0 && can_have(path))
		return 0;
	snprintf(netns, sizeof(netns), "%llu", (unsigned long long)rundir_netns());
	if (xdg && xdg[0] == '/')
		snprintf(dir, sizeof(dir), "%s/urxe", xdg);
	else
		rc = find_own_home(dir, sizeof(dir), error);
	return rc ? rc : join_run_dir_path(path, error, dir, netns);
}

/*
 * Checks that path is a directory that belongs to this user, and that others cannot write to. Any
 * user may create files in /tmp, and so might have made the directory as a trap. Returns 0, or a
 * negative errno value and a sentence in `error`.
 */
static int check_owner(const char *path, char error[RUNDIR_ERROR])
{
	struct stat st;

	if (lstat(path, &st)) {
		snprintf(error, RUNDIR_ERROR, "run directory %s: %s", path, strerror(errno));
		return -errno;
	}
	if (!S_ISDIR(st.st_mode)) {
		snprintf(error, RUNDIR_ERROR, "run directory %s is not a directory", path);
		return -ENOTDIR;
	}
	if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
		snprintf(error, RUNDIR_ERROR,
			 "run directory %s belongs to another user or others may write to it",
			 path);
		return -EPERM;
	}
	return 0;
}

/*
 * Makes dir and its missing parents. Parents get mode 0755, because other users may have run
 * directories below them. *made tells whether dir is new. 0 or a negative errno value.
 */
static int make_dir_tree(const char *dir, mode_t mode, bool *made)
{
	char parent[RUNDIR_MAX];
	char *slash;
	bool above;
	int rc;

	*made = !mkdir(dir, mode);
	if (*made || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return -errno;
	snprintf(parent, sizeof(parent), "%s", dir);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return -ENOENT;
	*slash = '\0';
	rc = make_dir_tree(parent, 0755, &above);
	if (rc)
		return rc;
	*made = !mkdir(dir, mode);
	return *made || errno == EEXIST ? 0 : -errno;
}

static void make_file_path(char name[PATH_MAX], const char *path, const char *file)
{
	snprintf(name, PATH_MAX, "%s/%s", path, file);
}

static bool has_file(const char *path, const char *file)
{
	char name[PATH_MAX];
	struct stat st;

	make_file_path(name, path, file);
	return !lstat(name, &st);
}

/*
 * Refuses (-EEXIST) a directory with files of these names that no urxed has made, because urxed
 * removes such files at its start and end. A daemon's directory also has a lock file; without a
 * lock file the files are a user's. A daemon that starts at the same moment makes the files after
 * its lock file, so the function looks for the lock file once more.
 */
static int check_foreign_files(const char *path, char error[RUNDIR_ERROR])
{
	static const char *const names[] = {"sys", "dev", "dpdk", "urxed.log"};

	if (has_file(path, LOCK_NAME))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has_file(path, names[i]) && !has_file(path, LOCK_NAME)) {
			snprintf(error, RUNDIR_ERROR,
				 "urxed would remove %s/%s, which is not of a urxed: choose "
				 "another --run-dir",
				 strcmp(path, "/") ? path : "", names[i]);
			return -EEXIST;
		}
	return 0;
}

int rundir_create(const char *path, char error[RUNDIR_ERROR])
{
	char parent[RUNDIR_MAX], home[RUNDIR_MAX];
	bool made;
	int rc;

	/* 0711: a program that has given up root must reach the device's attributes in sys/. */
	rc = make_dir_tree(path, 0711, &made);
	if (rc) {
		snprintf(error, RUNDIR_ERROR,
			 "cannot make run directory %s: %s; choose another --run-dir", path,
			 strerror(-rc));
		return rc;
	}
	rc = check_owner(path, error);
	/* The owner of /tmp/urxe-UID could rename the directories in it, so check that one, too. */
	snprintf(parent, sizeof(parent), "%s", path);
	*strrchr(parent, '/') = '\0';
	home_in_tmp(home, sizeof(home));
	if (!rc && !strcmp(parent, home))
		rc = check_owner(parent, error);
	if (!rc)
		rc = check_foreign_files(path, error);
	return rc ? rc : made;
}

/* Does path still name the locked file? */
static bool is_same_file(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(path, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static int write_pid(const char *path, char error[RUNDIR_ERROR])
{
	char name[PATH_MAX];
	int fd, rc;

	make_file_path(name, path, RUNDIR_PID);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	rc = fd < 0 || dprintf(fd, "%d\n", getpid()) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (rc)
		snprintf(error, RUNDIR_ERROR, "cannot write " RUNDIR_PID " in %s: %s", path,
			 strerror(-rc));
	return rc;
}

/*
 * Writes " (process 1234)" for the daemon that holds the lock, or "" before that daemon has written
 * its PID file.
 */
static void describe_lock_holder(const char *path, char text[32])
{
	char name[PATH_MAX];
	int pid = 0;
	FILE *file;

	make_file_path(name, path, RUNDIR_PID);
	text[0] = '\0';
	file = fopen(name, "re");
	if (!file)
		return;
	if (fscanf(file, "%d", &pid) == 1)
		snprintf(text, 32, " (process %d)", pid);
	fclose(file);
}

static int lock_dir(const char *path, char error[RUNDIR_ERROR])
{
	char name[PATH_MAX], other[32];
	int fd, tries, err;

	make_file_path(name, path, LOCK_NAME);
	/*
	 * A daemon that ends removes its lock file, so the file locked here may be the removed one.
	 */
	for (tries = 0; tries < 100; tries++) {
		fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			break;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			close(fd);
			describe_lock_holder(path, other);
			snprintf(error, RUNDIR_ERROR, "another urxed%s already serves %s", other,
				 path);
			return -EBUSY;
		}
		if (is_same_file(fd, name))
			return fd;
		close(fd);
	}
	err = fd < 0 ? errno : EAGAIN;
	if (err == ENOENT) {
		snprintf(error, RUNDIR_ERROR, "another urxed has just removed %s", path);
		return -EBUSY;
	}
	snprintf(error, RUNDIR_ERROR, "cannot lock run directory %s: %s", path, strerror(err));
	return -err;
}

/* Locks the directory itself, against systemd-tmpfiles(8), which removes old files, such as the
 * lock file, except in a locked directory. */
static void keep_files(const char *path)
{
	held_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (held_dir >= 0)
		flock(held_dir, LOCK_EX | LOCK_NB);
}

int rundir_lock(const char *path, bool own, char error[RUNDIR_ERROR])
{
	int fd = lock_dir(path, error), rc;

	if (fd < 0)
		return fd;
	held_lock = fd;
	keep_files(path);
	rc = write_pid(path, error);
	if (!rc)
		return fd;
	rundir_release(path, fd, own);
	return rc;
}

int rundir_grant_group(const char *path, const char *name, gid_t group, char error[RUNDIR_ERROR])
{
	char file[PATH_MAX];
	int err;

	make_file_path(file, path, name);
	if (!chown(path, (uid_t)-1, group) && !chmod(path, 0711) &&
	    !chown(file, (uid_t)-1, group) && !chmod(file, 0660))
		return 0;
	err = errno;
	snprintf(error, RUNDIR_ERROR, "cannot let group %u use run directory %s: %s",
		 (unsigned)group, path, strerror(err));
	return -err;
}

static int remove_tree_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

bool rundir_is_lost(const char *path)
{
	char name[PATH_MAX];

	make_file_path(name, path, LOCK_NAME);
	return held_lock >= 0 && has_file(path, LOCK_NAME) && !is_same_file(held_lock, name);
}

int rundir_remove(const char *path, const char *name)
{
	char tree[PATH_MAX];

	if (rundir_is_lost(path))
		return -ESTALE;
	snprintf(tree, sizeof(tree), "%s/%s", path, name);
	if (nftw(tree, remove_tree_entry, 8, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
		return -errno;
	return 0;
}

/*
 * Removes the parent of a default run directory, which urxe has named, if it is empty. A run
 * directory counts as a default one if its name is the number of the network namespace. The
 * directories of several namespaces may share a parent.
 */
static void remove_own_parent(const char *path)
{
	char parent[RUNDIR_MAX], netns[24];
	char *slash, *name;

	snprintf(parent, sizeof(parent), "%s", path);
	snprintf(netns, sizeof(netns), "%llu", (unsigned long long)rundir_netns());
	slash = strrchr(parent, '/');
	if (strcmp(slash + 1, netns) != 0)
		return;
	*slash = '\0';
	name = strrchr(parent, '/');
	if (name && !strncmp(name, "/urxe", 5))
		rmdir(parent);
}

void rundir_release(const char *path, int lock_fd, bool own)
{
	rundir_remove(path, RUNDIR_PID);
	/* If the tree `sys` could not be removed, the lock file must stay: it tells the next daemon
	 * that a daemon made the tree. */
	if (!has_file(path, "sys"))
		rundir_remove(path, LOCK_NAME);
	held_lock = -1;
	close(lock_fd);
	if (held_dir >= 0)
		close(held_dir);
	held_dir = -1;
	if (own && !rmdir(path))
		remove_own_parent(path);
}
