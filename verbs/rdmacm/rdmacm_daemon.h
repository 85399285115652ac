/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Commands that the daemon runs; router.c decides which ones. All functions: with file->lock. */
#ifndef URXE_VERBS_RDMACM_RDMACM_DAEMON_H
#define URXE_VERBS_RDMACM_RDMACM_DAEMON_H

#include "rdmacm/rdmacm_file.h"

/*
 * Runs any command but GET_EVENT; MIGRATE_ID also with the lock of request->from. 0, or a negative
 * errno value; -EIO: the daemon is gone; -EBADF: another thread has closed the file.
 */
int rdmacm_daemon_run(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response);
/* Tells the daemon which events were fetched; otherwise the next command does. Errors as above. */
int rdmacm_daemon_confirm_events(struct rdmacm_file *file);

#endif
