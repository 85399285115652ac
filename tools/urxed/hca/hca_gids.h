/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads the GID table of a RoCE port from sysfs. For hca_scan. */
#ifndef URXE_URXED_HCA_HCA_GIDS_H
#define URXE_URXED_HCA_HCA_GIDS_H

#include "urxed/hca/hca_scan.h"

/*
 * Appends the valid entries of the GID table in `dir`, the port's directory, to p->gids, and sets
 * v1, v2 and ndev. `sys`: where sysfs is mounted. Entries that the kernel changes meanwhile, that
 * are malformed, or that exceed HCA_GIDS are left out.
 */
void hca_gids_read(const char *sys, const char *dir, struct hca_port *p);

#endif
