/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* VERSION: the first message of a connection, with the capabilities of both sides as JSON. */
#ifndef URXE_VNIC_VFIO_VERSION_H
#define URXE_VNIC_VFIO_VERSION_H

#include <stdint.h>

/*
 * Checks the body of the client's command and writes the reply's to `reply`, which has room for
 * `room` bytes. Returns the length of the reply, -ENOTSUP for another major version, or -EINVAL.
 */
int version_answer(const uint8_t *body, uint32_t size, uint8_t *reply, uint32_t room);

#endif
