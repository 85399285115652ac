/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An Ethernet frame without FCS, in a buffer of a ring. */
#ifndef URXE_VNIC_FRAME_H
#define URXE_VNIC_FRAME_H

#include <stdint.h>

struct vnic_frame {
	uint8_t *data;
	uint32_t len;  /* bytes */
	uint32_t room; /* bytes that data has, when it is to be filled */
};

#endif
