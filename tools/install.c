/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "install.h"

#include <errno.h>
#include <stdio.h>
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

int install_urxed(char path[PATH_MAX])
{
	char dir[PATH_MAX];

	if (!own_dir(dir) && !look(path, dir, "urxed"))
		return 0;
	return look(path, URXE_BINDIR, "urxed");
}

/* A build tree is known by its shape: the program is in tools/, the library in verbs/. */
int install_liburxe(char path[PATH_MAX])
{
	char dir[PATH_MAX];
	char *name;

	if (!own_dir(dir) && (name = strrchr(dir, '/')) && !strcmp(name, "/tools")) {
		*name = '\0';
		return look(path, dir, "verbs/liburxe.so");
	}
	return look(path, URXE_LIBDIR, "liburxe.so");
}
