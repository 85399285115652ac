/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread "urxe-cm", which notices the daemon's end while the program only waits for events: it
 * connects open files of rdma_cm to the next daemon, or gives up. One thread for all open files,
 * from the first open to the last close.
 */
#ifndef URXE_VERBS_RDMACM_RDMACM_RECONNECT_H
#define URXE_VERBS_RDMACM_RDMACM_RECONNECT_H

#include "rdmacm/rdmacm_file.h"

/* With file->lock; file->socket is connected. 0, or a negative errno value. */
int rdmacm_reconnect_add(struct rdmacm_file *file);
/* With file->lock; also where the file was not added. Joins the thread after the last file. */
void rdmacm_reconnect_remove(struct rdmacm_file *file);

/* With file->lock: file->socket is new, or is about to be closed. */
void rdmacm_reconnect_watch(struct rdmacm_file *file);
void rdmacm_reconnect_unwatch(struct rdmacm_file *file);

/* With rdmacm_files_lock, in the child of a fork: the child has no thread. */
void rdmacm_reconnect_in_child(void);

#endif
