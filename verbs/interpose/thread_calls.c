/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The interposed function of libc that ends a thread. */
#include <pthread.h>

#include "attach/main_thread.h"
#include "process/libc_real.h"

void pthread_exit(void *value)
{
	main_thread_note_exit();
	REAL(pthread_exit)(value);
	__builtin_unreachable();
}
