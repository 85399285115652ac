/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/install_paths.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the directory of this program's file to dir, without a trailing slash. 0 or a negative
 * errno value. */
static int program_dir(char dir[PATH_MAX])
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

static int check_readable(char path[PATH_MAX], const char *dir, const char *name)
{
	if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	return access(path, R_OK) ? -errno : 0;
}

/*
 * Whether the directory of this program is that of a build tree: there the programs lie in tools/,
 * beside verbs/ and netdev/.
 */
static bool in_build_tree(const char *dir)
{
	const char *name = strrchr(dir, '/');

	return name && !strcmp(name, "/tools");
}

/*
 * Finds the installed file DIR/NAME. Looks first beside the directory of this program (bin/ or
 * sbin/), because a package's staging directory or a user may have moved the prefix, then below
 * URXE_PREFIX, or in DIR itself if DIR is absolute. Returns 0 or a negative errno value.
 */
static int find_installed(char path[PATH_MAX], const char *dir, const char *name)
{
	char own[PATH_MAX], place[PATH_MAX];

	if (!program_dir(own) &&
	    snprintf(place, sizeof(place), "%s/../%s", own, dir) < (int)sizeof(place) &&
	    !check_readable(path, place, name)) {
		if (realpath(path, own))
			memcpy(path, own, PATH_MAX);
		return 0;
	}
	snprintf(place, sizeof(place), "%s/%s", dir[0] == '/' ? "" : URXE_PREFIX, dir);
	return check_readable(path, place, name);
}

int install_path_urxed(char path[PATH_MAX])
{
	char dir[PATH_MAX];

	if (!program_dir(dir) && in_build_tree(dir))
		return check_readable(path, dir, "urxed");
	return find_installed(path, URXE_SBINDIR, "urxed");
}

/*
 * Finds a file of the private library directory. built: its path within a build tree; name: its
 * name where urxe is installed. 0 or a negative errno value.
 */
static int find_in_pkglibdir(char path[PATH_MAX], const char *built, const char *name)
{
	char dir[PATH_MAX];

	if (!program_dir(dir) && in_build_tree(dir)) {
		*strrchr(dir, '/') = '\0';
		return check_readable(path, dir, built);
	}
	return find_installed(path, URXE_PKGLIBDIR, name);
}

int install_path_liburxe(char path[PATH_MAX])
{
	return find_in_pkglibdir(path, "verbs/liburxe.so", "liburxe.so");
}

int install_path_liburxe_outer(char path[PATH_MAX])
{
	return find_in_pkglibdir(path, "verbs/liburxe-outer.so", "liburxe-outer.so");
}

int install_path_roce_xdp(char path[PATH_MAX])
{
	return find_in_pkglibdir(path, "netdev/xdp/roce.bpf.o", "roce.bpf.o");
}

int install_path_bench(char path[PATH_MAX])
{
	char dir[PATH_MAX];
	int rc = program_dir(dir);

	return rc ? rc : check_readable(path, dir, "urxe-bench");
}
