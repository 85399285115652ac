/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interpose/device_node.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <vnic/attach.h>

#include "interpose/own_fd.h"
#include "interpose/path_redirect.h"
#include "rdmacm/rdmacm.h"
#include "uverbs/ucontext.h"

static const struct {
	const char *path;
	const char *dev;           /* sysfs file with its device number */
	unsigned int major, minor; /* Linux' number, if the file cannot be read */
} devices[] = {
	[DEVICE_UVERBS] = {"/dev/infiniband/" VNIC_UVERBS_NAME,
			   "/sys/class/infiniband_verbs/" VNIC_UVERBS_NAME "/dev", 231, 1216},
	[DEVICE_RDMACM] = {"/dev/infiniband/rdma_cm", "/sys/class/misc/rdma_cm/dev", 10, 122},
};

enum device device_by_path(const char *path)
{
	if (!path_watched(path))
		return DEVICE_NONE;
	for (int i = DEVICE_UVERBS; i <= DEVICE_RDMACM; i++)
		if (!strcmp(path, devices[i].path))
			return (enum device)i;
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
	return device == DEVICE_RDMACM ? rdmacm_open(flags) : uverbs_file_open(flags);
}

/* The number in sysfs and the number from stat must agree: UCX and librdmacm compare them. */
uint64_t device_rdev(enum device device)
{
	unsigned int major, minor;
	char path[PATH_MAX];
	FILE *f = fopen(path_redirect(devices[device].dev, path), "re");

	if (!f || fscanf(f, "%u:%u", &major, &minor) != 2) {
		major = devices[device].major;
		minor = devices[device].minor;
	}
	if (f)
		fclose(f);
	return makedev(major, minor);
}
