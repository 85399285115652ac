/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs and the SRQ: connection, attributes, states. */
#ifndef URXE_SMOKE_RANDOM_QUEUE_PAIR_H
#define URXE_SMOKE_RANDOM_QUEUE_PAIR_H

#include "side.h"

/* Both sides call it. Connects a queue pair, from any state. Exits on failure. */
void queue_pair_connect(struct side *side, int qp);
/* Both sides call it. Connects a queue pair if it is broken on one of them; returns whether it was.
 */
bool queue_pair_repair(struct side *side, int qp);
enum ibv_qp_state queue_pair_state(const struct side *side, int qp);
/* Exits on failure. */
void queue_pair_modify(struct side *side, int qp, struct ibv_qp_attr *attr, int mask);

/* Operations; the queue pair is connected. */
void queue_pair_change(struct side *side, int qp);
void queue_pair_query(struct side *side, int qp);
void queue_pair_srq(struct side *side);

#endif
