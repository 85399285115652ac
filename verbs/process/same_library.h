/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether two functions are of one library. Not dladdr(), which waits for the dynamic linker's
 * lock: its holder may run a constructor that waits for the calling thread or for adapter.lock.
 */
#ifndef URXE_VERBS_PROCESS_SAME_LIBRARY_H
#define URXE_VERBS_PROCESS_SAME_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>

/* Addresses within loaded libraries or the program. Any thread; no lock. */
static inline bool same_library(void *a, void *b)
{
	struct dl_find_object of_a, of_b;

	return !_dl_find_object(a, &of_a) && !_dl_find_object(b, &of_b) &&
	       of_a.dlfo_map_start == of_b.dlfo_map_start;
}

#endif
