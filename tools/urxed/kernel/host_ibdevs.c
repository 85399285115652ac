/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/host_ibdevs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <vnic/attach_protocol.h>

#define KERNEL_GROUP 1 /* multicast group of the kernel's uevents; udev's are in group 2 */
#define EVENT_ROOM   8192

static const char *const classes[] = {"class/infiniband", "class/infiniband_verbs"};

/* --- Links */

/* Descriptors of a device class's directory in the tree (own) and in the kernel's sysfs, and the
 * path of the latter. */
struct class
{
	int own;
	int kernel; /* -1: the kernel module is not loaded */
	const char *path;
};

typedef int name_fn(const struct class *class, const char *name);

/* Calls fn for each entry of a directory, up to the first error, and returns that error, else 0. */
static int for_each_name(int dir_fd, name_fn *fn, const struct class *class)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int rc = dir ? 0 : -errno;

	while (!rc && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			rc = fn(class, entry->d_name);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return rc;
}

static bool has_entry(int dir, const char *name)
{
	struct stat st;

	return dir >= 0 && !fstatat(dir, name, &st, 0);
}

static int remove_stale_link(const struct class *class, const char *name)
{
	struct stat st;

	if (has_entry(class->kernel, name) || fstatat(class->own, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISLNK(st.st_mode))
		return 0;
	return unlinkat(class->own, name, 0) ? -errno : 0;
}

/* Links only directories, because the tree already has the other files of the kernel's class, such
 * as abi_version. */
static int add_link(const struct class *class, const char *name)
{
	char target[PATH_MAX];
	struct stat st;

	if (fstatat(class->kernel, name, &st, 0) || !S_ISDIR(st.st_mode))
		return 0;
	if (snprintf(target, sizeof(target), "%s/%s", class->path, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	return symlinkat(target, class->own, name) && errno != EEXIST ? -errno : 0;
}

static int open_dir(const char *top, const char *name, char path[PATH_MAX])
{
	int fd;

	if (snprintf(path, PATH_MAX, "%s/%s", top, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Writes the path of a directory as the kernel knows it. If this process runs with an outer urxed's
 * liburxe.so, the name by which it opened the directory means another directory to the kernel.
 * Returns 0 or a negative errno value.
 */
static int real_path(int dir, char path[PATH_MAX])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, path, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return 0;
}

static int link_class(const char *tree, const char *sys, const char *name)
{
	char own_path[PATH_MAX], path[PATH_MAX];
	struct class class = {.own = open_dir(tree, name, own_path), .path = path};
	int rc;

	if (class.own < 0)
		return class.own;
	class.kernel = open_dir(sys, name, path);
	rc = class.kernel >= 0 ? real_path(class.kernel, path) : 0;
	if (!rc)
		rc = for_each_name(class.own, remove_stale_link, &class);
	if (!rc && class.kernel >= 0)
		rc = for_each_name(class.kernel, add_link, &class);
	close(class.own);
	if (class.kernel >= 0)
		close(class.kernel);
	return rc;
}

int host_ibdevs_link(const char *run_dir, const char *sys)
{
	char tree[PATH_MAX];
	int rc = 0;

	if (snprintf(tree, sizeof(tree), "%s/" VNIC_SYSFS_NAME, run_dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	for (unsigned int i = 0; i < sizeof(classes) / sizeof(classes[0]) && !rc; i++)
		rc = link_class(tree, sys, classes[i]);
	return rc;
}

/* --- Uevents */

int host_ibdevs_open(struct host_ibdevs *b)
{
	int rc = 0;

	b->events = mnl_socket_open2(NETLINK_KOBJECT_UEVENT, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (!b->events)
		return -errno;
	if (mnl_socket_bind(b->events, KERNEL_GROUP, MNL_SOCKET_AUTOPID)) {
		rc = -errno;
		host_ibdevs_close(b);
	}
	return rc;
}

void host_ibdevs_close(struct host_ibdevs *b)
{
	if (b->events)
		mnl_socket_close(b->events);
	b->events = NULL;
}

int host_ibdevs_fd(const struct host_ibdevs *b)
{
	return b->events ? mnl_socket_get_fd(b->events) : -1;
}

bool host_ibdevs_changed(struct host_ibdevs *b)
{
	char event[EVENT_ROOM];
	bool changed = false;
	ssize_t n;

	if (!b->events)
		return false;
	/* A uevent begins with, for instance, "add@/devices/virtual/infiniband/rxe0". ENOBUFS says
	 * that the kernel has dropped uevents, so anything may have changed. */
	do {
		n = mnl_socket_recvfrom(b->events, event, sizeof(event) - 1);
		event[n > 0 ? n : 0] = '\0';
		changed |= n < 0 ? errno == ENOBUFS || errno == ENOSPC
				 : strstr(event, "/infiniband") != NULL;
	} while (n > 0 || errno == ENOBUFS || errno == ENOSPC || errno == EINTR);
	return changed;
}
