/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/libc_real.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *real_functions[REAL_COUNT];

#define REAL_NAME(name) #name,
static const char *const names[] = {REAL_LIST(REAL_NAME)};

NOT_INSTRUMENTED void *real_resolve(enum real_function function)
{
	void *f = dlsym(RTLD_NEXT, names[function]);

	/* libc lacks the function. No program calls it then, because it could not be linked. */
	if (!f) {
		fprintf(stderr, "urxe: this libc has no %s\n", names[function]);
		abort();
	}
	__atomic_store_n(&real_functions[function], f, __ATOMIC_RELAXED);
	return f;
}

void real_resolve_all(void)
{
	for (int i = 0; i < REAL_COUNT; i++)
		__atomic_store_n(&real_functions[i], dlsym(RTLD_NEXT, names[i]), __ATOMIC_RELAXED);
}
