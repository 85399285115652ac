/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of the simulator. It cannot go on without: these end the program with a line. */
#ifndef URXE_SIM_ALLOC_H
#define URXE_SIM_ALLOC_H

#include <stddef.h>

void *sim_alloc(size_t size);
/* Zeroed; pages that nobody touches cost nothing. */
void *sim_calloc(size_t n, size_t size);
void *sim_realloc(void *old, size_t size);

/* For what the engine can refuse only for want of memory, or through a mistake of the simulator. */
#define sim_require(condition)                                       \
	do {                                                         \
		if (!(condition))                                    \
			sim_give_up(__FILE__, __LINE__, #condition); \
	} while (0)
__attribute__((noreturn)) void sim_give_up(const char *file, int line, const char *condition);

#endif
