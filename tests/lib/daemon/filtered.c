/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Preloaded, gives a test of the daemon's code the daemon's filter of system calls. */
#include <stdlib.h>

#include "urxed/privilege/syscall_filter.h"

__attribute__((constructor)) static void install_filter(void)
{
	if (syscall_filter_install())
		abort();
}
