/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/frame_count.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Longer than a line of the kernel's dev_seq_printf_stats. */
#define LINE_ROOM 512

bool frame_count_parse(const char *line, const char *ifname, uint64_t *frames)
{
	const size_t len = strlen(ifname);
	uint64_t received, sent;

	line += strspn(line, " ");
	if (strncmp(line, ifname, len) || line[len] != ':')
		return false;
	/* Eight columns for received frames, of which the second counts them, then as many for sent
	 * ones. */
	if (sscanf(line + len + 1, "%*u %" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
		   &received, &sent) != 2)
		return false;
	*frames = received + sent;
	return true;
}

uint64_t frame_count_read(const char *ifname)
{
	/* Of the calling thread's network namespace; a mounted sysfs may belong to another one. */
	FILE *file = fopen("/proc/thread-self/net/dev", "re");
	char line[LINE_ROOM];
	uint64_t frames = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file) && !frame_count_parse(line, ifname, &frames))
		;
	fclose(file);
	return frames;
}
