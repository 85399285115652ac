/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Drops the privileges of the daemon after its start, except those with which it can open its
 * uplinks again.
 */
#ifndef URXE_URXED_PRIVILEGE_PRIVILEGE_H
#define URXE_URXED_PRIVILEGE_PRIVILEGE_H

#include <stdint.h>

/* Returns the capabilities, as bits 1 << CAP_..., that the daemon needs to close and reopen uplinks
 * of these n specifications. */
uint64_t privilege_needed(const char *const *uplinks, uint32_t n);

#define PRIVILEGE_ERROR 256
/*
 * Drops all capabilities but `needed` in all threads, prevents that execve(2) adds others, and
 * filters the system calls (syscall_filter.h). Returns 0; or a negative errno value, and `error`
 * has one sentence.
 */
int privilege_drop(uint64_t needed, char error[PRIVILEGE_ERROR]);

#endif
