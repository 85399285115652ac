/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Partition keys (IBA volume 1, 10.9). */
#ifndef URXE_PKEY_H
#define URXE_PKEY_H

#include <stdbool.h>
#include <stdint.h>

#define PKEY_PARTITION 0x7fff
#define PKEY_FULL      0x8000 /* a full member; else a limited one */

struct urxe_dev;
struct urxe_packet;
struct urxe_qp;

/* An entry that holds 0 as its partition is empty, and such a P_Key is invalid on the wire. */
static inline bool pkey_valid(uint16_t pkey)
{
	return pkey & PKEY_PARTITION;
}

/* Members of one partition, at least one of them a full one (IBA 10.9.3). */
static inline bool pkey_matches(uint16_t a, uint16_t b)
{
	return (a & PKEY_PARTITION) == (b & PKEY_PARTITION) && pkey_valid(a) && (a | b) & PKEY_FULL;
}

/* Index of the first entry that the P_Key matches; negative where there is none. */
int pkey_find(const struct urxe_dev *dev, uint16_t pkey);
/* Whether the QP may receive a packet, by its P_Key. */
bool pkey_admits(const struct urxe_qp *qp, const struct urxe_packet *p);

#endif
