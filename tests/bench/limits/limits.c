/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * limits CPU CPU NAME[:SIZE]... prints each limit as JSON, by its argument: a time in seconds, a
 * bandwidth in bytes per second, a rate in messages per second, or a share of a CPU.
 */
#include "limits.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

static const struct limit {
	const char *name;
	double (*measure)(const struct bench_cpus *cpus, size_t size);
} limits[] = {
	{"bounce", limit_bounce},     {"ring", limit_ring},
	{"tcp", limit_tcp},           {"wakeup", limit_wakeup},
	{"vm_write", limit_vm_write}, {"memcpy", limit_memcpy},
	{"copy_crc", limit_copy_crc}, {"pass_crc", limit_pass_crc},
	{"vm_read", limit_vm_read},   {"wakeup_silent", limit_wakeup_silent},
	{"lines", limit_lines},       {"stream", limit_stream},
	{"paced", limit_paced},       {"mlock", limit_mlock},
	{"relay", limit_relay},       {"relay_apart", limit_relay_apart},
};

uint8_t *limit_buffer(size_t size)
{
	const size_t whole = (size + PAGE - 1) / PAGE * PAGE;
	uint8_t *buffer = aligned_alloc(PAGE, whole);

	if (!buffer)
		err(1, "aligned_alloc");
	return memset(buffer, 0x5a, whole);
}

static const struct limit *find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (strlen(limits[i].name) == len && !memcmp(limits[i].name, name, len))
			return &limits[i];
	errx(2, "no limit '%.*s'", (int)len, name);
}

int main(int argc, char **argv)
{
	struct bench_cpus cpus;

	if (argc < 4)
		errx(2, "usage: limits CPU CPU NAME[:SIZE]...");
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	bench_pin(cpus.own);
	for (int i = 3; i < argc; i++) {
		size_t len = strcspn(argv[i], ":");
		size_t size = argv[i][len] ? strtoul(argv[i] + len + 1, NULL, 10) : 0;

		printf("%s\"%s\": %.6g", i == 3 ? "{" : ", ", argv[i],
		       find(argv[i], len)->measure(&cpus, size));
	}
	puts("}");
	return 0;
}
