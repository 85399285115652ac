/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paths of the files that belong together in one installation or one build tree. By them urxe
 * starts urxed and urxe-bench and preloads liburxe.so, and urxed loads the XDP program.
 */
#ifndef URXE_COMMON_INSTALL_PATHS_H
#define URXE_COMMON_INSTALL_PATHS_H

#include <limits.h>

/*
 * Find urxed, liburxe.so, its second copy (urxe/preload.h) and the XDP program: only in the build
 * tree if the running program lies in one, else where urxe is installed. Return 0 or a negative
 * errno value; on -ENOENT, path holds the last path tried.
 */
int install_path_urxed(char path[PATH_MAX]);
int install_path_liburxe(char path[PATH_MAX]);
int install_path_liburxe_outer(char path[PATH_MAX]);
int install_path_roce_xdp(char path[PATH_MAX]);
/* Finds urxe-bench in the directory of the running program; result as of install_path_urxed. */
int install_path_bench(char path[PATH_MAX]);

#endif
