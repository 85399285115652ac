/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creation, reset and destruction of QPs, and their timers. */
#ifndef URXE_DEVICE_QP_LIFECYCLE_H
#define URXE_DEVICE_QP_LIFECYCLE_H

#include <rxe/rxe.h>

#include "util/timer.h"

/* Returns the QP that contains the timer. */
struct urxe_qp *qp_of_timer(const struct timer *timer);
/* Returns the QP's timer of this kind, such as TIMER_RETRY; NULL: no timer has the kind. */
struct timer *qp_find_timer(struct urxe_qp *qp, uint8_t kind);
/* Calls the function for the kind of a timer that has fallen due. */
void qp_timer_fired(struct timer *timer);
/* Returns the QP to RESET: forgets its transport state and its requests. */
void qp_reset(struct urxe_qp *qp);

#endif
