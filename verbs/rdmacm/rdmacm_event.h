/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GET_EVENT: the next event of the daemon's or of the kernel's. */
#ifndef URXE_VERBS_RDMACM_RDMACM_EVENT_H
#define URXE_VERBS_RDMACM_RDMACM_EVENT_H

#include "rdmacm/rdmacm_file.h"

/*
 * Without file->lock. Waits at the program's descriptor fd, unless that is O_NONBLOCK. 0, or a
 * negative errno value; -EIO: the daemon is gone and all of its IDs have reported DEVICE_REMOVAL.
 */
int rdmacm_get_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		     struct rdmacm_response *response);

#endif
