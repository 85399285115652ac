/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "smaps.h"

#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "row.h"

void smaps_say(const void *address)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	uintptr_t at = (uintptr_t)address, start, end;
	char line[512], permissions[8], name[256];
	bool here = false;

	if (!file)
		err(1, "/proc/self/smaps");
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		name[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &start, &end, permissions,
			   name) >= 3) {
			here = at >= start && at < end;
			if (here)
				say("mapping of %lu bytes, %s %s", end - start, permissions,
				    strstr(name, "memory-") ? "file" : name);
		} else if (here && !strncmp(line, "VmFlags:", 8)) {
			say("%s", line);
		}
	}
	fclose(file);
}

uint64_t smaps_huge_kib(const void *address)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	uintptr_t at = (uintptr_t)address, start, end;
	uint64_t kib = 0;
	bool here = false;
	char line[512];

	if (!file)
		err(1, "/proc/self/smaps");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = at >= start && at < end;
		else if (here)
			sscanf(line, "AnonHugePages: %lu", &kib);
	}
	fclose(file);
	return kib;
}
