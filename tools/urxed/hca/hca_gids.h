/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads the GID table of a RoCE port from sysfs. hca_scan.c calls this. */
#ifndef URXE_URXED_HCA_HCA_GIDS_H
#define URXE_URXED_HCA_HCA_GIDS_H

#include "urxed/hca/hca_scan.h"

/*
 * Appends the valid entries of the GID table in `dir`, the port's directory, to p->gids, and sets
 * p->v1, v2 and ndev. `sys`: where sysfs is mounted. Leaves out entries that the kernel changes
 * during the read, malformed ones, and those beyond HCA_GIDS.
 */
void hca_gids_read(const char *sys, const char *dir, struct hca_port *p);

#endif
