/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether a loaded file defines a symbol, for interpose/atfork_calls.c. */
#ifndef URXE_VERBS_PROCESS_DEFINES_SYMBOL_H
#define URXE_VERBS_PROCESS_DEFINES_SYMBOL_H

#include <stdbool.h>

/*
 * Whether the library, or the program, that contains `address` defines `name` in its dynamic symbol
 * table. False also if `address` is in no loaded file, e.g. NULL, or the file has no GNU hash
 * table. Any thread. Takes no lock: a holder of the dynamic linker's lock, which dlsym() takes, may
 * run a constructor that waits for the caller.
 */
bool defines_symbol(void *address, const char *name);

#endif
