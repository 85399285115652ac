/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Partition keys (IBA volume 1, 10.9): bit 15 is the membership, bits 0 to 14 the partition. */
#ifndef URXE_OBJECTS_PKEY_H
#define URXE_OBJECTS_PKEY_H

#include <stdbool.h>
#include <stdint.h>

#define PKEY_PARTITION 0x7fff
#define PKEY_FULL      0x8000 /* full member; without it a limited member */

struct urxe_dev;
struct urxe_packet;
struct urxe_qp;

/* Whether the partition is not 0, which marks an empty table entry and is invalid on the wire. */
static inline bool pkey_valid(uint16_t pkey)
{
	return pkey & PKEY_PARTITION;
}

/* Whether both have the same partition, and at least one is a full member (IBA 10.9.3). */
static inline bool pkey_matches(uint16_t a, uint16_t b)
{
	return (a & PKEY_PARTITION) == (b & PKEY_PARTITION) && pkey_valid(a) && (a | b) & PKEY_FULL;
}

/* Index of the first entry that matches the P_Key; -1 if none does. */
int pkey_find(const struct urxe_dev *dev, uint16_t pkey);
/* Whether the P_Key of the packet lets the QP receive it. */
bool pkey_admits(const struct urxe_qp *qp, const struct urxe_packet *p);

#endif
