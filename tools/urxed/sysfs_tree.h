/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tree below the run directory that plays /sys and /dev for clients: what the
 * kernel shows of an RDMA device (Documentation/ABI/stable/sysfs-class-infiniband).
 */
#ifndef URXE_URXED_SYSFS_TREE_H
#define URXE_URXED_SYSFS_TREE_H

#include "urxed/hostnet/host.h"

/* Writes the tree, over a stale one. On error nothing of it stays. */
int sysfs_tree_create(const char *run_dir, const struct host *host);
/* What has changed since `before`: each file is the old one or the new one to who reads it. */
int sysfs_tree_update(const char *run_dir, const struct host *host, const struct host *before);
void sysfs_tree_remove(const char *run_dir);

#endif
