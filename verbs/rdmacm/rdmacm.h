/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An open /dev/infiniband/rdma_cm. What the kernel's rdma_ucm module would do with its
 * commands, urxed does (cm/attach.h); here they are only carried, with what they point to.
 *
 * The program's descriptor is a socket with a packet for each event that can be fetched:
 * blocking, O_NONBLOCK, poll and epoll then work by themselves.
 */
#ifndef URXE_VERBS_RDMACM_RDMACM_H
#define URXE_VERBS_RDMACM_RDMACM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fd.h"

struct rdmacm_file;

/* Opens the device: a descriptor, or a negative errno value. */
int rdmacm_open(int flags);

static inline struct rdmacm_file *rdmacm_lookup(int fd)
{
	struct fd_object *object = fd_lookup(fd);

	return object && object->kind == FD_RDMACM ? (struct rdmacm_file *)object : 0;
}

/* As write(2). */
ssize_t rdmacm_write(struct rdmacm_file *file, int fd, const void *buf, size_t count);

#endif
