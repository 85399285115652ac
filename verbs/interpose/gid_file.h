/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The files of gid_attrs below /sys/class/infiniband/DEVICE/ports/PORT. For the interposed
 * functions that open a file.
 */
#ifndef URXE_VERBS_INTERPOSE_GID_FILE_H
#define URXE_VERBS_INTERPOSE_GID_FILE_H

/*
 * As in the kernel, the file of an empty entry of the GID table can be opened, and reading it fails
 * with EINVAL. The run directory has no such files, only the directories of its ports. The same
 * happens if the file names an interface that the caller's network namespace lacks: libibverbs
 * takes EINVAL for an entry without interface, but fails for the whole table if the name has no
 * index.
 *
 * path: what the program has opened, fd and errno: the result of its counterpart in the run
 * directory. flags: of open(2). Returns fd; or closes fd and returns another descriptor, whose
 * reads fail with EINVAL; -1 and errno on errors.
 */
int gid_file_opened(const char *path, int fd, int flags);

#endif
