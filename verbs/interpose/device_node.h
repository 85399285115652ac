/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The character devices that this library plays: /dev/infiniband/uverbs1024 (or
 * 1025, run_dir_uverbs_name) and rdma_cm. For the interposed libc functions.
 */
#ifndef URXE_VERBS_INTERPOSE_DEVICE_NODE_H
#define URXE_VERBS_INTERPOSE_DEVICE_NODE_H

#include <stdint.h>

enum device { DEVICE_NONE, DEVICE_UVERBS, DEVICE_RDMACM };

/* The device that a path names; DEVICE_NONE: no device of this library, or path_redirect leaves the
 * path to the kernel's node. */
enum device device_by_path(const char *path);
/* The device that a descriptor refers to; DEVICE_NONE: none, or an event channel. */
enum device device_by_fd(int fd);
/* The device that `path` names, or, with AT_EMPTY_PATH in flags, that fd refers to. */
enum device device_at(int fd, const char *path, int flags);
/* Opens the device with the flags of open(2). Returns a descriptor, or a negative errno value. */
int device_open(enum device device, int flags);
/* The device's number for st_rdev of stat(2): from its sysfs file, or else Linux' usual number. */
uint64_t device_rdev(enum device device);

#endif
