/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether the kernel can give a mapping all its memory at once (madvise(2), Linux 5.14). */
#ifndef URXE_TEST_POPULATE_H
#define URXE_TEST_POPULATE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* Not in every libc's headers. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Of no page at all: so it is the advice alone that can be wrong. */
static inline bool kernel_populates(void)
{
	return !madvise(NULL, 0, MADV_POPULATE_WRITE) || errno != EINVAL;
}

#endif
