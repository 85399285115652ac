/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * write(2) (uverbs.c) and ioctl(2) (uverbs_ioctl.c) on an open uverbs device, as the kernel's
 * ib_uverbs module handles them. For interpose/fd_calls.c.
 */
#ifndef URXE_VERBS_UVERBS_UVERBS_H
#define URXE_VERBS_UVERBS_UVERBS_H

#include <stddef.h>
#include <sys/types.h>

struct uverbs_file;

/* Runs the command in buf; returns and sets errno as write(2) does. */
ssize_t uverbs_write(struct uverbs_file *file, int fd, const void *buf, size_t count);
/* Runs the command of RDMA_VERBS_IOCTL at arg; returns and sets errno as ioctl(2) does. ENOTTY
 * makes rdma-core use write(2) for the command. */
int uverbs_ioctl(struct uverbs_file *file, const void *arg);

#endif
