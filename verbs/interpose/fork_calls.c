/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interposed function of libc that pthread_atfork(3) calls.
 *
 * fork() calls the handlers that were installed first last before the fork, and first after it. The
 * handlers of this library hold its locks in between. So they have to be installed before those of
 * the program, which may call verbs or wait for a thread that does, and after those of the
 * allocator, whose locks a holder of adapter.lock may need.
 */
#include <stdlib.h>

#include "attach/fork.h"
#include "process/libc_real.h"
#include "process/same_library.h"
#include "rdmacm/rdmacm.h"

/* An allocator that locks nothing before fork needs no place. */
static bool is_of_allocator(void (*prepare)(void))
{
	return same_library((void *)prepare, (void *)malloc);
}

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
		      void *library)
{
	if (!is_of_allocator(prepare)) {
		adapter_install_fork_handlers();
		rdmacm_install_fork_handlers();
	}
	return REAL(__register_atfork)(prepare, parent, child, library);
}
