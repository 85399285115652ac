/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A text that one process hands to another, in memory that nobody can change any more (memfd). */
#ifndef URXE_COMMON_SEALED_TEXT_H
#define URXE_COMMON_SEALED_TEXT_H

#include <stddef.h>

#define SEALED_TEXT_MAX (64u << 20) /* bytes */

/* Returns the descriptor, close-on-exec, or a negative errno value. */
int sealed_text_make(const char *text, size_t len);
/*
 * Reads a stranger's snapshot; *text is the caller's to free, with a NUL behind it.
 * -EPERM: it is no memory, or could still change; -EFBIG: too long; -ENOMEM, -EIO.
 */
int sealed_text_read(int fd, char **text, size_t *len);

#endif
