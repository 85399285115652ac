/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that notices the end of urxed where the program does nothing but wait for events of
 * rdma_cm: it looks for the next one, or has the program told that there is none. There is one for
 * all open devices, from the first until the last is closed.
 */
#ifndef URXE_VERBS_RDMACM_RECONNECT_H
#define URXE_VERBS_RDMACM_RECONNECT_H

#include "rdmacm/file.h"

/* The file has a socket. 0, or a negative errno value. */
int rdmacm_keeper_add(struct rdmacm_file *file);
/* With file->lock. Nothing where it was not added; waits for the thread's end where it was the
 * last. */
void rdmacm_keeper_remove(struct rdmacm_file *file);

/* For rdmacm_link.c: it has another socket, or is about to have none. */
void rdmacm_keeper_watch(struct rdmacm_file *file);
void rdmacm_keeper_unwatch(struct rdmacm_file *file);

/* --- rdmacm_link.c, for the keeper: with file->lock. */

/* Whether urxed has gone, and nobody has noticed. */
bool rdmacm_link_hung(const struct rdmacm_file *file);
/* Begins to look for another one. */
void rdmacm_link_lost(struct rdmacm_file *file);
/* Looks once; gives up when it is time. */
void rdmacm_link_look(struct rdmacm_file *file);

#endif
