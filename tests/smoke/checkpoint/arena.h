/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of a program that is saved and restored: malloc of the whole process takes it from one
 * range at a fixed address. What was allocated before arena_enter is not a part of it.
 */
#ifndef URXE_TEST_ARENA_H
#define URXE_TEST_ARENA_H

#include <stddef.h>

/* From now on, memory comes from the arena. */
void arena_enter(void);
/* Writes the arena, with its root, to a file; ends the program if that fails. */
void arena_save(const char *path, void *root);
/* Puts a saved arena at its place, enters it, and returns its root. */
void *arena_load(const char *path);

#endif
