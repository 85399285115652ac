/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files without a name, in the directory that run.py chose. */
#ifndef URXE_TEST_MEMORY_FILE_H
#define URXE_TEST_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* A descriptor of a file of `size` bytes, each `byte`. Exits on failure. */
int file_make(size_t size, uint8_t byte);

#endif
