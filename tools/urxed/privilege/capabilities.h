/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The capabilities of the calling thread, as bits 1 << CAP_... The daemon drops the capabilities
 * that it no longer needs; a helper process keeps only those that helper_start names.
 */
#ifndef URXE_URXED_PRIVILEGE_CAPABILITIES_H
#define URXE_URXED_PRIVILEGE_CAPABILITIES_H

#include <stdint.h>

#define CAPABILITY(number) (UINT64_C(1) << (number))

/* Returns the permitted set of the calling thread; 0 if capget(2) fails. */
uint64_t capabilities_get(void);
/*
 * Drops all capabilities of this thread that are not in `keep`; the inheritable and the ambient set
 * become empty. Signal handlers may call it. Returns 0 or a negative errno value.
 */
int capabilities_keep(uint64_t keep);

#endif
