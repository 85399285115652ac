/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Has the daemon run commands; router.c decides which ones. All functions: with file->lock. */
#ifndef URXE_VERBS_RDMACM_RDMACM_DAEMON_H
#define URXE_VERBS_RDMACM_RDMACM_DAEMON_H

#include "rdmacm/rdmacm_file.h"

/*
 * Runs any command but GET_EVENT, or answers it from the reply cache; MIGRATE_ID also with the lock
 * of request->from. While no daemon runs, waits for the next one, with file->lock released. 0, or a
 * negative errno value; -EIO: no daemon comes any more; -EBADF: another thread has closed the file.
 */
int rdmacm_daemon_run(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response);
/* Tells the daemon at once which events were fetched; otherwise the next command tells it. Waits
 * and errors as rdmacm_daemon_run. */
int rdmacm_daemon_confirm_events(struct rdmacm_file *file);

#endif
