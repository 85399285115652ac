/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Accesses to the program's memory at addresses that the program has put into commands. A bad
 * address gives -EFAULT, as in the kernel.
 */
#ifndef URXE_VERBS_MEMORY_UACCESS_H
#define URXE_VERBS_MEMORY_UACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* End of the addresses that the kernel gives to mappings, unless the process asks for higher ones
 * by a hint to mmap(2). */
#if defined(__aarch64__)
#define UACCESS_END (UINT64_C(1) << 48)
#else
#define UACCESS_END (UINT64_C(1) << 47)
#endif

/* Copy `size` bytes from (uaccess_read) or to (uaccess_write) an address of the program. 0 or
 * -EFAULT. Any thread. */
int uaccess_read(void *to, uint64_t from, size_t size);
int uaccess_write(uint64_t to, const void *from, size_t size);

/*
 * Checks that [start, start + length) can be read, or with `writable` also written, as the kernel's
 * get_user_pages does. Populates the pages, unless the range is larger than the machine's memory,
 * or the kernel is older than 5.14. 0 or -EFAULT.
 */
int uaccess_populate(uint64_t start, uint64_t length, int writable);

/* Whether each byte of [start, start + length) is mapped, with any protection. Allocates no memory,
 * and populates nothing. */
bool uaccess_is_mapped(uint64_t start, uint64_t length);

/*
 * Reads one byte of each page of [start, start + length), so that missing pages become present, up
 * to a bad address. Without adapter.lock: with userfaultfd, a fault waits for the program's
 * handler.
 */
void uaccess_touch(uint64_t start, uint64_t length);

#endif
