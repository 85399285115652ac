/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether the kernel may hold pages of this process for longer than a system call. */
#ifndef URXE_VERBS_PINNED_H
#define URXE_VERBS_PINNED_H

#include <stdbool.h>

/*
 * By what is open: io_uring, userfaultfd, AF_XDP, devices of any but the plainest kinds; or as the
 * program has locked memory. True also where that cannot be told. Not seen are contexts of Linux'
 * aio, which maps.h shows.
 */
bool pinned_any(void);

#endif
