/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread "urxe-cm", which notices the daemon's end while the program only waits for events: it
 * connects open files of rdma_cm to the next daemon, or gives up. One thread for all open files,
 * from the first open to the last close.
 */
#ifndef URXE_VERBS_RDMACM_RDMACM_RECONNECT_H
#define URXE_VERBS_RDMACM_RDMACM_RECONNECT_H

#include "rdmacm/rdmacm_file.h"

/* Counts the file among those of the thread, starts the thread for the first file, and watches
 * file->socket, which is connected. With file->lock. 0, or a negative errno value. */
int rdmacm_reconnect_add(struct rdmacm_file *file);
/* Undoes rdmacm_reconnect_add; no effect if the file was not added. After the last file it ends the
 * thread, and waits for its end unless the program has closed the thread's descriptors. With
 * file->lock. */
void rdmacm_reconnect_remove(struct rdmacm_file *file);

/* The thread watches file->socket, which is new, from now on. With file->lock. */
void rdmacm_reconnect_watch(struct rdmacm_file *file);
/* Call it before file->socket is closed: the thread no longer watches it. With file->lock. */
void rdmacm_reconnect_unwatch(struct rdmacm_file *file);

/*
 * Two spare descriptors of the process reserve numbers for the two descriptors that a daemon sends
 * with its welcome, in case the process reaches its limit of descriptors. Closes the spares. With
 * rdmacm_files_lock, which the caller holds until it has received the welcome.
 */
void rdmacm_reconnect_close_spares(void);
/* Opens the spare descriptors again, as far as possible. Takes rdmacm_files_lock. */
void rdmacm_reconnect_keep_spares(void);

/* In a forked child, which has no such thread: closes the thread's descriptors, and forgets the
 * files. With rdmacm_files_lock. */
void rdmacm_reconnect_in_child(void);

#endif
