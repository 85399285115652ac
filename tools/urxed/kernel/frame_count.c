/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/frame_count.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Longer than a line of the kernel's dev_seq_printf_stats. */
#define LINE_ROOM 512

bool frame_count_parse(const char *line, const char *ifname, struct frame_count *count)
{
	const size_t len = strlen(ifname);

	line += strspn(line, " ");
	if (strncmp(line, ifname, len) || line[len] != ':')
		return false;
	/* A line has eight columns for received frames, the second of which is the number of
	 * frames, and then eight for sent ones. */
	return sscanf(line + len + 1, "%*u %" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
		      &count->received, &count->sent) == 2;
}

struct frame_count frame_count_read(const char *ifname)
{
	/* This file shows the calling thread's network namespace; a mounted sysfs may show another
	 * one. */
	FILE *file = fopen("/proc/thread-self/net/dev", "re");
	struct frame_count count = {0};
	bool found = false;
	char line[LINE_ROOM];

	while (file && !found && fgets(line, sizeof(line), file))
		found = frame_count_parse(line, ifname, &count);
	if (file)
		fclose(file);
	return found ? count : (struct frame_count){0};
}
