/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unnamed files in the working directory, which run.py chooses. */
#ifndef URXE_TEST_MEMORY_FILE_H
#define URXE_TEST_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Creates a file of `size` bytes, each `byte`; returns its descriptor. Exits on failure. */
int file_make(size_t size, uint8_t byte);

#endif
