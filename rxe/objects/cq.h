/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues, and their overrun. objects/completion.c adds completions to them. */
#ifndef URXE_OBJECTS_CQ_H
#define URXE_OBJECTS_CQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

enum cq_armed { CQ_DISARMED, CQ_ARMED_SOLICITED, CQ_ARMED_NEXT };

struct urxe_cq {
	struct urxe_dev *dev;
	void *ctx;
	uint32_t users; /* number of QPs; a QP counts once for send_cq and once for recv_cq */
	uint8_t armed;  /* enum cq_armed */
	bool overrun;   /* a completion was lost: the CQ takes no more (IBA 11.6.3.1, CQ error) */
	void *hca;      /* the HCA's queue; NULL: none */
	uint32_t offloaded; /* offloaded QPs; a QP counts as `users` does */
	uint32_t number;    /* index in the saved stream; valid during urxe_state_save
			       (state/state_save.c) */
	LIST_ENTRY(urxe_cq) link;
};

/* CQ overrun: a completion found no room. Reports the CQ's asynchronous error, and all QPs of the
 * CQ enter the error state. */
void cq_overrun(struct urxe_cq *cq);

#endif
