/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replaces the function of libc that pthread_atfork(3) calls: this library's handlers of fork have
 * to come after those of the allocator, and before the program's (process/fork_handlers.h).
 */
#include "process/defines_symbol.h"
#include "process/fork_handlers.h"
#include "process/libc_real.h"

/* Whether the file (program or library) that has the handler defines malloc, and so is an
 * allocator. A process may have several: a profiler's malloc calls another one. */
NOT_INSTRUMENTED static bool is_of_allocator(void (*handler)(void))
{
	return defines_symbol((void *)handler, "malloc");
}

NOT_INSTRUMENTED int __register_atfork(void (*prepare)(void), void (*parent)(void),
				       void (*child)(void), void *library)
{
	const bool of_allocator =
		is_of_allocator(prepare) || is_of_allocator(parent) || is_of_allocator(child);
	int rc;

	if (!of_allocator)
		fork_handlers_install();
	rc = REAL(__register_atfork)(prepare, parent, child, library);
	if (of_allocator)
		fork_handlers_follow_allocator();
	return rc;
}
