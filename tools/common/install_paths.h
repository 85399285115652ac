/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where the parts of an installation, or of a build tree, lie. */
#ifndef URXE_COMMON_INSTALL_PATHS_H
#define URXE_COMMON_INSTALL_PATHS_H

#include <limits.h>

/*
 * The daemon, the preload library and af_xdp's program that belong to this program:
 * those of its build tree, else the installed ones. -ENOENT: path says where it was looked for.
 */
int install_path_urxed(char path[PATH_MAX]);
int install_path_liburxe(char path[PATH_MAX]);
int install_path_roce_xdp(char path[PATH_MAX]);
/* What urxe bench starts, beside urxe. */
int install_path_bench(char path[PATH_MAX]);

#endif
