/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creation, reset and destruction of QPs, and their timers. */
#ifndef URXE_QP_LIFECYCLE_H
#define URXE_QP_LIFECYCLE_H

#include <rxe/rxe.h>

#include "util/timer.h"

/* Calls the function of a QP's timer that has fallen due. */
/* The QP that has the timer, and its timer of a kind; NULL: no such kind. */
struct urxe_qp *qp_of_timer(const struct timer *timer);
struct timer *qp_find_timer(struct urxe_qp *qp, uint8_t kind);
void qp_timer_fired(struct timer *timer);
/* Publishes the QP for the direct transport as long as it executes requests. */
void qp_publish_rights(const struct urxe_qp *qp);
/* Returns the QP to RESET: forgets its transport state and its requests. */
void qp_reset(struct urxe_qp *qp);

#endif
