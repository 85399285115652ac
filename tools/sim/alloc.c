/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/alloc.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/command_line.h"

static void *require_memory(void *memory, size_t size)
{
	if (memory || !size)
		return memory;
	fprintf(stderr, "urxe: sim: no memory for %zu bytes more; make the scenario smaller\n",
		size);
	exit(STATUS_FAILED);
}

void *sim_alloc(size_t size)
{
	return require_memory(malloc(size), size);
}

void *sim_calloc(size_t n, size_t size)
{
	return require_memory(calloc(n, size), n * size);
}

void *sim_realloc(void *old, size_t size)
{
	return require_memory(realloc(old, size), size);
}

void sim_abort(const char *file, int line, const char *condition)
{
	fprintf(stderr, "urxe: sim: %s:%d: requirement failed: %s\n", file, line, condition);
	exit(STATUS_FAILED);
}
