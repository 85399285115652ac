/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The files of gid_attrs below /sys/class/infiniband/DEVICE/ports/PORT. For the interposed
 * open(2), fopen(3) and their variants.
 */
#ifndef URXE_VERBS_INTERPOSE_GID_FILE_H
#define URXE_VERBS_INTERPOSE_GID_FILE_H

#include <stdio.h>

/*
 * Completes an open(2) of the path by the program. fd, errno: the result of the open of its
 * counterpart in the run directory. flags: of open(2). Returns fd, also -1, and leaves errno. In
 * two cases returns another descriptor instead, whose reads fail with EINVAL; or -1 and errno:
 * EACCES for an open for writing.
 *
 * First, the path is that of an empty entry of the GID table, and fd is -1, because the run
 * directory has no file for it. The kernel's file of such an entry can be opened, and reading it
 * fails with EINVAL.
 *
 * Second, the file names an interface that the caller's network namespace lacks; closes fd.
 * libibverbs would fail for the whole table if the name has no index, but takes EINVAL for an entry
 * without interface.
 */
int gid_file_opened(const char *path, int fd, int flags);
/* The same for an fopen(3). `stream`: the result of the fopen of the counterpart; NULL for -1. */
FILE *gid_file_fopened(const char *path, FILE *stream, const char *mode);

#endif
