/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The character devices that this library plays. */
#ifndef URXE_VERBS_INTERPOSE_DEVICE_NODE_H
#define URXE_VERBS_INTERPOSE_DEVICE_NODE_H

#include <stdint.h>

enum device { DEVICE_NONE, DEVICE_UVERBS, DEVICE_RDMACM };

/* Which of them a path names. */
enum device device_by_path(const char *path);
/* Which of them fd is open on. */
enum device device_by_fd(int fd);
/* Which of them is meant by path, or, with AT_EMPTY_PATH in flags, by fd itself. */
enum device device_at(int fd, const char *path, int flags);
/* A descriptor, or a negative errno value. */
int device_open(enum device device, int flags);
/* Its number, as sysfs says it. */
uint64_t device_rdev(enum device device);

#endif
