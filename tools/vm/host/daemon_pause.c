/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/daemon_pause.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include <vnic/attach_protocol.h>

struct daemon_file daemon_file_look(const char *run_dir)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" VNIC_SOCKET_NAME, run_dir);
	if (stat(path, &st))
		return (struct daemon_file){0};
	return (struct daemon_file){.inode = st.st_ino, .changed = st.st_ctim};
}

static bool is_same_file(const struct daemon_file *a, const struct daemon_file *b)
{
	return a->inode == b->inode && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

bool daemon_pause_lasts(const struct daemon_pause *pause, const char *run_dir, uint64_t now)
{
	struct daemon_file file;

	if (now >= pause->until)
		return false;
	file = daemon_file_look(run_dir);
	return is_same_file(&file, &pause->file);
}
