/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Work requests. */
#ifndef URXE_SMOKE_RANDOM_REQUEST_H
#define URXE_SMOKE_RANDOM_REQUEST_H

#include "side.h"

/* Posts a WRITE without payload. */
void request_post_empty(struct side *side, int qp);
/* Operations; the queue pair is connected. */
void request_post_receives(struct side *side, int qp, uint32_t count);
void request_post_sends(struct side *side, int qp);

#endif
