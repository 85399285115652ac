/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_TEST_DESCRIPTOR_COUNT_H
#define URXE_TEST_DESCRIPTOR_COUNT_H

#include <dirent.h>

/* Grows with each descriptor of the process; also counts three entries that are always there. */
static inline unsigned int descriptor_count(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (folder && readdir(folder))
		n++;
	if (folder)
		closedir(folder);
	return n;
}

#endif
