/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers that no two records of a saved process share. For image.c. */
#ifndef URXE_VERBS_CHECKPOINT_DISTINCT_H
#define URXE_VERBS_CHECKPOINT_DISTINCT_H

#include "checkpoint/image/image.h"

/*
 * Refuses (-EBADMSG) the stream if two PDs, queue pairs or descriptors have one number, or two IDs
 * of one rdma_cm device. checkpoint_error_text tells which. Handles and keys: rebuild.c.
 */
void image_require_distinct(struct state_stream *s, const struct image *image);

#endif
