/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of a PCI function as a stream: its configuration space, the interrupts that are
 * pending, and the model's own stream. The client has the rest: the MSI-X table, and which vectors
 * have eventfds.
 */
#ifndef URXE_VNIC_VFIO_FUNCTION_STATE_H
#define URXE_VNIC_VFIO_FUNCTION_STATE_H

#include <stddef.h>
#include <stdint.h>

struct vnic_vfio_server;

/* Saves the function, whose model the caller has stopped. Sets *stream, which the caller frees with
 * free(3). Returns 0, -ENOMEM or the model's error. */
int function_state_save(struct vnic_vfio_server *server, uint8_t **stream, size_t *length);
/*
 * Restores the function from a stream. -EBADMSG: truncated, damaged or contradictory;
 * -EPROTONOSUPPORT: of a later version; -EINVAL: of another kind of PCI function; or the model's
 * error. After an error of the model's own `restore` the model is as after its reset; another error
 * leaves the model unchanged.
 */
int function_state_restore(struct vnic_vfio_server *server, const uint8_t *stream, size_t length);

#endif
