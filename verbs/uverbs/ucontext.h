/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens and closes uverbs devices. For the interposed open(2), and checkpoint/. */
#ifndef URXE_VERBS_UVERBS_UCONTEXT_H
#define URXE_VERBS_UVERBS_UCONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "objects/uverbs_file.h"

/* Opens the device: a descriptor, or a negative errno value. */
int uverbs_file_open(int flags);

/*
 * A context that is not live, without objects and descriptors; NULL: no memory. Without the lock of
 * the adapter. uverbs_file_free is for one that never got a descriptor; release by fd_remove frees
 * the others.
 */
struct uverbs_file *uverbs_file_alloc(void);
void uverbs_file_free(struct uverbs_file *file);
/*
 * Around a command, without the lock of the adapter: the last of the commands and descriptors
 * destroys the objects. False: that has happened already.
 */
bool uverbs_file_get(struct uverbs_file *file);
void uverbs_file_put(struct uverbs_file *file);
/* A memfd for the rings of a context, with O_CLOEXEC or not; a negative errno value. */
int uverbs_file_memfd(int flags, uint64_t size);

#endif
