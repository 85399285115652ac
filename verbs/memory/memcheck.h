/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Informs valgrind's memcheck about registered memory. For uverbs/cmd_mr.c. */
#ifndef URXE_VERBS_MEMORY_MEMCHECK_H
#define URXE_VERBS_MEMORY_MEMCHECK_H

#include <stdint.h>

#ifdef URXE_MEMCHECK
#include <valgrind/memcheck.h>
#endif

/*
 * Tells memcheck to regard this memory as initialised, because memcheck does not see the bytes that
 * a peer writes there by process_vm_writev(2). Takes few instructions without valgrind. Any thread.
 */
static inline void memcheck_define(uint64_t start, uint64_t length)
{
#ifdef URXE_MEMCHECK
	/* Memory that the program may not access, such as malloc's red zones, stays forbidden. */
	VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(start, length);
#else
	(void)start;
	(void)length;
#endif
}

#endif
