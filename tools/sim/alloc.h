/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory allocation of the simulator. Without memory these print a line and end the program. */
#ifndef URXE_SIM_ALLOC_H
#define URXE_SIM_ALLOC_H

#include <stddef.h>

void *sim_alloc(size_t size);
/* Returns zeroed memory, never NULL. Pages that the caller does not access take no memory. */
void *sim_calloc(size_t n, size_t size);
void *sim_realloc(void *old, size_t size);

/* Ends the program if the condition is false. For calls that fail only for want of memory, or by a
 * bug of the simulator. */
#define sim_require(condition)                                     \
	do {                                                       \
		if (!(condition))                                  \
			sim_abort(__FILE__, __LINE__, #condition); \
	} while (0)
__attribute__((noreturn)) void sim_abort(const char *file, int line, const char *condition);

#endif
