/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Conversion of work requests and completions between the engine and libibverbs. */
#ifndef URXE_VERBS_HCA_OBJECTS_WR_H
#define URXE_VERBS_HCA_OBJECTS_WR_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rxe/types.h>

#include "work_id.h"

/* The largest number of requests in the list that one call of libibverbs gets. */
#define HCA_WR_BATCH 16

/* Sets the members of *to that the operation uses, but not wr_id, next and, for a datagram, its
 * address handle. If the data is inline, *to refers to *sge, which then describes the data and must
 * live as long as *to. */
void hca_wr_send(struct ibv_send_wr *to, struct ibv_sge *sge, const struct urxe_send_wr *from);

/*
 * Converts up to HCA_WR_BATCH receive requests of the queue `id` to a linked list, and takes a slot
 * for each. Returns their number: fewer than n if no slot is left, or n exceeds HCA_WR_BATCH.
 */
uint32_t hca_wr_receives(struct ibv_recv_wr *list, const struct urxe_recv_wr *wrs, uint32_t n,
			 struct work_slots *slots, uint32_t id);
/* Gives back the slots of the n receive requests at `list`, which the HCA has not taken. */
void hca_wr_unused(const struct ibv_recv_wr *list, uint32_t n, struct work_slots *slots);

/*
 * Of a list of n requests, the number that the provider has taken: n if its function returned rc 0,
 * else `bad`, the index of *bad_wr; 0 if the provider set no *bad_wr (`bad` is negative).
 */
uint32_t hca_wr_taken(int rc, ptrdiff_t bad, uint32_t n);
/*
 * `rc`: the value that the provider's function has returned: 0, an errno value, or -1 with errno
 * set. Returns 0; -ENOMEM, for ENOMEM and EAGAIN: the provider's queue is full; -EINVAL, for any
 * other error: the provider refuses the request.
 */
int hca_wr_error(int rc);

/* Sets the members of *to that *from has too, but not wr_id and qpn; of a completion with an error
 * only `status`, because the others are invalid. */
void hca_wr_completion(struct urxe_wc *to, const struct ibv_wc *from);

#endif
