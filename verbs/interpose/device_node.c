/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interpose/device_node.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <vnic/attach_protocol.h>

#include "interpose/path_redirect.h"
#include "process/cancellation.h"
#include "process/emulated_fd.h"
#include "process/run_dir.h"
#include "process/text_lines.h"
#include "rdmacm/rdmacm.h"
#include "uverbs/ucontext.h"

static const struct node {
	const char *path;
	const char *dev;           /* sysfs file with its device number */
	unsigned int major, minor; /* Linux' usual number, used if `dev` cannot be read */
} rdma_cm = {"/dev/infiniband/rdma_cm", "/sys/class/misc/rdma_cm/dev", 10, 122};

#define UVERBS_NODE(name, minor)                                                                \
	{                                                                                       \
		"/dev/infiniband/" name, "/sys/class/infiniband_verbs/" name "/dev", 231, minor \
	}
static const struct node uverbs = UVERBS_NODE(VNIC_UVERBS_NAME, 1216);
static const struct node uverbs_other = UVERBS_NODE(VNIC_UVERBS_OTHER, 1217);

static const struct node *node_of(enum device device)
{
	if (device == DEVICE_RDMACM)
		return &rdma_cm;
	return strcmp(run_dir_uverbs_name(), VNIC_UVERBS_NAME) ? &uverbs_other : &uverbs;
}

/* Not inlined: `buf` must not be on a small stack while the thread opens the device. */
static __attribute__((noinline)) bool is_redirected(const char *path)
{
	char buf[PATH_MAX];

	return path_redirect(path, buf) != path;
}

enum device device_by_path(const char *path)
{
	if (!path_watched(path))
		return DEVICE_NONE;
	for (int i = DEVICE_UVERBS; i <= DEVICE_RDMACM; i++)
		if (!strcmp(path, node_of((enum device)i)->path))
			return is_redirected(path) ? (enum device)i : DEVICE_NONE;
	return DEVICE_NONE;
}

enum device device_by_fd(int fd)
{
	const struct fd_object *object = fd_lookup(fd);

	if (!object || object->kind == FD_CHANNEL)
		return DEVICE_NONE;
	return object->kind == FD_RDMACM ? DEVICE_RDMACM : DEVICE_UVERBS;
}

enum device device_at(int fd, const char *path, int flags)
{
	if (flags & AT_EMPTY_PATH && (!path || !path[0]))
		return device_by_fd(fd);
	return device_by_path(path);
}

int device_open(enum device device, int flags)
{
	const int cancel = cancellation_disable();
	int fd = device == DEVICE_RDMACM ? rdmacm_open(flags) : uverbs_file_open(flags);

	cancellation_restore(cancel);
	return fd;
}

/* Not inlined, so that `path` is not on the stack while device_rdev() reads the file. */
static __attribute__((noinline)) void open_dev_file(struct text_lines *lines,
						    const struct node *node)
{
	char path[PATH_MAX];

	text_lines_open(lines, path_redirect(node->dev, path));
}

/*
 * The number in sysfs and the number from stat must agree: UCX and librdmacm compare them.
 * glibc's stat() neither allocates memory nor is a cancellation point. So this function allocates
 * none, and reads the file by text_lines.h, which disables cancellation.
 */
uint64_t device_rdev(enum device device)
{
	const struct node *node = node_of(device);
	unsigned int major, minor;
	struct text_lines lines;
	char line[32];

	open_dev_file(&lines, node);
	if (!text_lines_next(&lines, line, sizeof(line)) ||
	    sscanf(line, "%u:%u", &major, &minor) != 2) {
		major = node->major;
		minor = node->minor;
	}
	text_lines_close(&lines);
	return makedev(major, minor);
}
