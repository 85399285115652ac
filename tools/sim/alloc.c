/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/alloc.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/exit_status.h"

static void *checked(void *memory, size_t size)
{
	if (memory || !size)
		return memory;
	fprintf(stderr, "urxe: sim: no memory for %zu bytes more; make the scenario smaller\n",
		size);
	exit(STATUS_FAILED);
}

void *sim_alloc(size_t size)
{
	return checked(malloc(size), size);
}

void *sim_calloc(size_t n, size_t size)
{
	return checked(calloc(n, size), n * size);
}

void *sim_realloc(void *old, size_t size)
{
	return checked(realloc(old, size), size);
}

void sim_give_up(const char *file, int line, const char *condition)
{
	fprintf(stderr, "urxe: sim: %s:%d: needed, but not so: %s\n", file, line, condition);
	exit(STATUS_FAILED);
}
