/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Text of other processes and files, made harmless for a terminal: log lines and the texts that
 * urxe prints in tables and lines pass through here.
 */
#ifndef URXE_COMMON_PRINTABLE_H
#define URXE_COMMON_PRINTABLE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Copies text, at most size - 1 bytes and whole characters, and ends it with a NUL. Characters that
 * control a terminal or hide what it shows, and bytes that are no UTF-8, become '?': C0, DEL, C1,
 * bidirectional controls, line separators, invisible and private-use characters.
 */
void printable_copy(char *to, size_t size, const char *text);

/* Writes text as a JSON string, in ASCII. */
void printable_json(FILE *out, const char *text);

#endif
