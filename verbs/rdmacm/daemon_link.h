/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way of an open /dev/infiniband/rdma_cm to urxed, which lasts longer than one urxed: where it
 * ends another one is looked for, as for the device, that knows what this file has.
 */
#ifndef URXE_VERBS_RDMACM_DAEMON_LINK_H
#define URXE_VERBS_RDMACM_DAEMON_LINK_H

#include "rdmacm/file.h"

/* Finds urxed. file->bell is there. 0, or a negative errno value; then nothing is left. */
int rdmacm_link_open(struct rdmacm_file *file);
/* With file->lock. Nothing where it is not open. */
void rdmacm_link_close(struct rdmacm_file *file);

/*
 * With file->lock, which is free while another urxed is looked for: a command and its answer. 0, or
 * -EIO: there is none any more, or the file is not that one any more.
 */
int rdmacm_link_ask(struct rdmacm_file *file, const struct rdmacm_request *request,
		    struct rdmacm_response *response);

#endif
