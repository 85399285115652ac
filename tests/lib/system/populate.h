/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether the kernel can populate a mapping with madvise(2) (Linux 5.14). */
#ifndef URXE_TEST_POPULATE_H
#define URXE_TEST_POPULATE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* Not every libc's headers define it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* With a length of 0, only an unknown advice can be the error. */
static inline bool kernel_populates(void)
{
	return !madvise(NULL, 0, MADV_POPULATE_WRITE) || errno != EINVAL;
}

#endif
