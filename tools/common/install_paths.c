/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/install_paths.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The directory of this program, without a slash at its end. */
static int own_dir(char dir[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return -errno;
	dir[n] = '\0';
	slash = strrchr(dir, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

static int look(char path[PATH_MAX], const char *dir, const char *name)
{
	if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	return access(path, R_OK) ? -errno : 0;
}

/* A build tree is known by its shape: the programs are in tools/, beside the other folders. */
static bool in_build_tree(const char *dir)
{
	const char *name = strrchr(dir, '/');

	return name && !strcmp(name, "/tools");
}

/*
 * What is installed as PREFIX/DIR/NAME. The prefix may have been moved since, or stand in a
 * directory of a package to be: then it is above the directory of this program, bin/.
 */
static int look_installed(char path[PATH_MAX], const char *dir, const char *name)
{
	char own[PATH_MAX], place[PATH_MAX];

	if (!own_dir(own) &&
	    snprintf(place, sizeof(place), "%s/../%s", own, dir) < (int)sizeof(place) &&
	    !look(path, place, name)) {
		if (realpath(path, own))
			memcpy(path, own, PATH_MAX);
		return 0;
	}
	snprintf(place, sizeof(place), "%s/%s", dir[0] == '/' ? "" : URXE_PREFIX, dir);
	return look(path, place, name);
}

int install_path_urxed(char path[PATH_MAX])
{
	char dir[PATH_MAX];

	if (!own_dir(dir) && in_build_tree(dir))
		return look(path, dir, "urxed");
	return look_installed(path, URXE_SBINDIR, "urxed");
}

/* built: its place in a build tree. */
static int look_in_library(char path[PATH_MAX], const char *built, const char *name)
{
	char dir[PATH_MAX];

	if (!own_dir(dir) && in_build_tree(dir)) {
		*strrchr(dir, '/') = '\0';
		return look(path, dir, built);
	}
	return look_installed(path, URXE_PKGLIBDIR, name);
}

int install_path_liburxe(char path[PATH_MAX])
{
	return look_in_library(path, "verbs/liburxe.so", "liburxe.so");
}

int install_path_roce_xdp(char path[PATH_MAX])
{
	return look_in_library(path, "netdev/xdp/roce.bpf.o", "roce.bpf.o");
}

int install_path_bench(char path[PATH_MAX])
{
	char dir[PATH_MAX];
	int rc = own_dir(dir);

	return rc ? rc : look(path, dir, "urxe-bench");
}
