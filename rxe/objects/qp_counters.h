/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of a QP: the functions add each event to the QP's counters and to the device's. */
#ifndef URXE_OBJECTS_QP_COUNTERS_H
#define URXE_OBJECTS_QP_COUNTERS_H

#include "objects/device.h"
#include "objects/qp.h"

static inline void qp_count(struct urxe_qp *qp, enum urxe_event event)
{
	qp->counters.event[event]++;
	dev_count(qp->dev, event);
}

static inline void qp_count_bytes(struct urxe_qp *qp, enum urxe_event event, uint32_t bytes)
{
	qp->counters.event[event] += bytes;
	qp->dev->counters.event[event] += bytes;
}

static inline void qp_drop(struct urxe_qp *qp, enum urxe_drop drop)
{
	qp->counters.drop[drop]++;
	dev_drop(qp->dev, drop);
}

#endif
