/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For fuzz targets: vfio-user messages of a hostile hypervisor, which the bytes of the input
 * choose. */
#ifndef URXE_FUZZ_VFIO_MESSAGE_H
#define URXE_FUZZ_VFIO_MESSAGE_H

#include <stdint.h>

#include <vnic/vfio_server.h>

#include "script.h"

#define VFIO_MESSAGE_PAGES   64u /* of the file that messages map */
#define VFIO_MESSAGE_VECTORS 25u /* of the function */
#define VFIO_MESSAGE_FDS     20u /* descriptors at most: more than a message may have */

/* The function whose server gets the messages. */
extern const struct vnic_vfio_function vfio_message_function;
/* For its model: an access must be aligned, within a BAR, and not to the MSI-X table. */
void vfio_message_check_access(uint32_t bar, uint32_t offset, uint32_t size);

struct vfio_message {
	uint8_t bytes[1024];
	uint32_t n;   /* bytes */
	uint32_t fds; /* descriptors that come with it */
	uint32_t cut; /* bytes of a first part, with as many descriptors; 0: the message is whole */
};

/* Any command, mostly one whose fields are near valid ones. */
void vfio_message_fill(struct script *in, struct vfio_message *m);
/* Bytes of the input. Returns n. */
uint32_t vfio_message_bytes(struct script *in, uint8_t *to, uint32_t n);

#endif
