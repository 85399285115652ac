/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads attributes of sysfs, each of which is a small file with one value
 * (Documentation/filesystems/sysfs.rst). The tree may be another daemon's (sysfs_tree.h), so these
 * functions trust no length. Call all of them in one thread.
 */
#ifndef URXE_URXED_HCA_SYSFS_FILE_H
#define URXE_URXED_HCA_SYSFS_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies the first line of a file, without white space at its ends. The path is `fmt` with the
 * arguments behind it. Returns 0; -ENAMETOOLONG: the line has `size` bytes or more; -EINVAL: it
 * contains a byte that is not printable ASCII; or the negative errno value of open(2) or read(2).
 * On error `text` is "".
 */
int sysfs_read_text(char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns the decimal number at the start of the file; 0 if there is none, if it is above
 * UINT32_MAX, or if the first line has 16 bytes or more. */
uint32_t sysfs_read_number(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * Copies the last component of a symbolic link's target. Arguments and results as of
 * sysfs_read_text.
 */
int sysfs_read_link(char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As opendir(3); sysfs_take_shortage() reports its failures, too. */
DIR *sysfs_open_dir(const char *path);

/* Whether one of the functions above has failed for want of descriptors or memory since the last
 * call. If so, what the caller read lacks files that the tree may have. */
bool sysfs_take_shortage(void);
/*
 * Makes sysfs_take_shortage() count `err`, the errno value of a caller's own open(2) or fopen(3).
 */
void sysfs_note_error(int err);

#endif
