/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What test programs do to themselves as a checkpointer does to a program: they call the functions
 * of liburxe.so, and note the addresses of rings. Functions end the program where it cannot go on.
 */
#ifndef URXE_TEST_CHECKPOINTER_H
#define URXE_TEST_CHECKPOINTER_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "checkpoint/checkpoint.h"

void *checkpointer_function(const char *name);
#define CALL(name) \
	((__typeof__(&urxe_checkpoint_##name))checkpointer_function("urxe_checkpoint_" #name))

/* `done`, or a line with the error and its sentence. */
const char *result(const char *done, int rc);
/* Executes the program again, if libraries have random addresses: each process has the same ones.
 */
void fix_addresses(char **argv);
/* librxe is loaded here, and stays. */
struct ibv_device **list_devices(void);
/* The libraries are where they were in the saved process. */
void check_addresses(const void *liburxe, const void *librxe);
/* Writes urxe's state, and the addresses of rings. Returns that of urxe_checkpoint_save. */
int checkpointer_save(const char *stream, const char *maps);
/* Whether a ring is mapped. */
bool has_rings(void);
/* Keeps the addresses of the rings free, until they are restored. */
void reserve_addresses(const char *maps);
/* Prints "restored", or the error and ends the program. */
void checkpointer_restore(const char *stream);
/* Takes commands from standard input, a line each, and prints the answers; NULL: no answer. */
void take_commands(const char *(*obey)(char *line));

#endif
