/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Limits of verbs/; the limits of the engine are in <rxe/types.h>. */
#ifndef URXE_VERBS_UVERBS_DEVICE_MAX_H
#define URXE_VERBS_UVERBS_DEVICE_MAX_H

#include <stdint.h>

#include <hca/hca.h>
#include <rxe/types.h>

#include "objects/handle.h"

#define MAX_WR           (URXE_MAX_WR - 1) /* rings have 2^n slots, one of them empty */
#define MAX_CQE          ((1 << 20) - 1)
#define MAX_COMP_VECTORS 1
#define LOCAL_ACK_DELAY  15 /* 4.096 us << 15 = 134 ms, which a thread may wait for a core */

/* The largest number of objects of each type; in practice memory limits all but queue pairs. */
extern const uint32_t device_max_objects[OBJECT_TYPES];

/* Sets *max to the limits of the device: those of the engine, reduced to those of its HCA. With
 * adapter.lock. */
void device_max(struct hca_limits *max);

/* Bits of device_cap_flags_ex in Linux 6.2's ib_user_verbs.h. */
#define CAP_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define CAP_ATOMIC_WRITE (UINT64_C(1) << 40)

#endif
