/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A text in a sealed memfd that one process sends to another over a UNIX socket: urxed's report,
 * and the processes' answers to urxe show.
 */
#ifndef URXE_COMMON_SEALED_TEXT_H
#define URXE_COMMON_SEALED_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define SEALED_TEXT_MAX (64ull << 20) /* bytes */

/*
 * Writes a text to a new memfd and seals it. Returns its close-on-exec descriptor or a negative
 * errno value.
 */
int sealed_text_make(const char *text, size_t len);
/*
 * Reads a text of at most `most` bytes, and never more than SEALED_TEXT_MAX, from another process's
 * descriptor into *text, which the caller frees; a NUL follows the text. Returns 0; -EPERM: not a
 * sealed memfd; -EFBIG: too long; -ENOMEM; -EIO.
 */
int sealed_text_read(int fd, uint64_t most, char **text, size_t *len);

#endif
