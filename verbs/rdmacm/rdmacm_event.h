/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command GET_EVENT: fetches the next event, of the daemon or of the kernel. */
#ifndef URXE_VERBS_RDMACM_RDMACM_EVENT_H
#define URXE_VERBS_RDMACM_RDMACM_EVENT_H

#include "rdmacm/rdmacm_file.h"

/*
 * file->lock must not be held. Waits for an event at the program's descriptor fd, unless fd is
 * O_NONBLOCK. 0, or a negative errno value; -EIO: no daemon comes any more, and all of its IDs have
 * reported DEVICE_REMOVAL. If another thread closes the device meanwhile, the function returns only
 * after a signal, as in the kernel.
 */
int rdmacm_get_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		     struct rdmacm_response *response);

#endif
