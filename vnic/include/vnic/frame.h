/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An Ethernet frame without FCS, in a buffer of a ring; of an inbox, its payload may lie elsewhere.
 */
#ifndef URXE_VNIC_FRAME_H
#define URXE_VNIC_FRAME_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that a sender leaves in memory of its own, as it tells who gets them. */
struct vnic_loan {
	uint64_t at;      /* where, in the memory that the two share */
	uint32_t trust;   /* until when, as its users count it; 0: the frame tells what they are */
	uint32_t len;     /* bytes */
	uint32_t lender;  /* the sender's number (vnic/inbox.h); 0: there is no loan */
	uint32_t headers; /* the CRC of the frame's, as its users compute it */
};

struct vnic_frame {
	uint8_t *data;
	uint32_t len;  /* bytes at data */
	uint32_t room; /* bytes that data has, when it is to be filled */
	bool quiet;    /* into an inbox: it wakes nobody who wants no frame like it (inbox.h) */
	struct vnic_loan loan;
};

#endif
