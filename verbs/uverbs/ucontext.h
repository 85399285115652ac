/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens and closes uverbs devices. For the interposed open(2), and checkpoint/. */
#ifndef URXE_VERBS_UVERBS_UCONTEXT_H
#define URXE_VERBS_UVERBS_UCONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "objects/uverbs_file.h"

/* Opens the device for open(2) with its flags; the first open attaches the process to the daemon.
 * Returns a descriptor, or a negative errno value. */
int uverbs_file_open(int flags);

/* Tells the user, once, why a program cannot open the device (a negative errno value): libibverbs
 * does not. */
void uverbs_log_open_error(int rc);

/*
 * Allocates a context with `live` false, without objects and descriptors; NULL: no memory.
 * adapter.lock must not be held. uverbs_file_free frees a context that never got a descriptor; a
 * context that got one is freed after fd_remove has removed its last descriptor.
 */
struct uverbs_file *uverbs_file_alloc(void);
void uverbs_file_free(struct uverbs_file *file);
/*
 * Bracket a command, and count it in file->users; adapter.lock must not be held. uverbs_file_put
 * destroys the context's objects if that was the last user. False: the objects are destroyed
 * already, so the command must not run, and no uverbs_file_put follows.
 */
bool uverbs_file_get(struct uverbs_file *file);
void uverbs_file_put(struct uverbs_file *file);
/* Creates a memfd of `size` bytes for the rings of a context. `flags`: those of open(2), of which
 * only O_CLOEXEC counts. Returns a descriptor, or a negative errno value. */
int uverbs_file_memfd(int flags, uint64_t size);

#endif
