/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * /dev/infiniband/rdma_cm for the interposed open(2) and write(2): librdmacm's commands go to the
 * daemon urxed, which does what the kernel's rdma_ucm module does, or to the kernel's own rdma_cm.
 */
#ifndef URXE_VERBS_RDMACM_RDMACM_H
#define URXE_VERBS_RDMACM_RDMACM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/emulated_fd.h"

struct rdmacm_file;

/*
 * Opens the device with open(2)'s flags: a descriptor, or a negative errno value. The descriptor is
 * readable while events can be fetched, so blocking reads, O_NONBLOCK, poll and epoll need no
 * further code.
 */
int rdmacm_open(int flags);
/* As rdmacm_open, but returns -ETIMEDOUT if urxed does not answer until `deadline`
 * (clock_monotonic()). */
int rdmacm_open_until(int flags, uint64_t deadline);

/* The file of a descriptor. NULL: fd is no rdma_cm device of this library. */
static inline struct rdmacm_file *rdmacm_lookup(int fd)
{
	struct fd_object *object = fd_lookup(fd);

	return object && object->kind == FD_RDMACM ? (struct rdmacm_file *)object : 0;
}

/* Runs one command of rdma/rdma_user_cm.h; returns and sets errno as write(2) does. */
ssize_t rdmacm_write(struct rdmacm_file *file, int fd, const void *buf, size_t count);

#endif
