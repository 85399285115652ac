/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory at addresses that a command names: copied, or -EFAULT, as a kernel does. */
#ifndef URXE_VERBS_MEMORY_UACCESS_H
#define URXE_VERBS_MEMORY_UACCESS_H

#include <stddef.h>
#include <stdint.h>

int user_read(void *to, uint64_t from, size_t size);
int user_write(uint64_t to, const void *from, size_t size);

/*
 * Whether [start, start + length) can be read, or read and written, as
 * get_user_pages would check; the pages are present afterwards, but for a range that is longer
 * than the machine has memory. 0, -EFAULT.
 */
int user_populate(uint64_t start, uint64_t length, int writable);

#endif
