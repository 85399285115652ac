/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The driver's path to its device. The driver knows registers, descriptors and messages only; a
 * transport carries them. shm.c carries them over a UNIX socket and shared memory; tests have
 * another one.
 */
#ifndef URXE_VNIC_TRANSPORT_H
#define URXE_VNIC_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"

struct vnic_driver;
struct vnic_transport;

/* Descriptors that come with an answer. */
struct vnic_passed {
	uint32_t wanted;              /* number to receive; afterwards the number received */
	int fds[VNIC_UPLINK_SOCKETS]; /* the most descriptors of an answer */
};

_Static_assert(VNIC_INBOX_FDS <= VNIC_UPLINK_SOCKETS, "room for the descriptors of an inbox");

struct vnic_transport_ops {
	/* Allocates zeroed memory that the device sees at address 0; called once. */
	int (*memory)(struct vnic_transport *transport, uint64_t size, void **memory);
	/*
	 * Sends a request of `len` bytes; *message becomes the answer, of the same type and length.
	 * The caller owns the descriptors in *passed. 0, or the error of the connection; then no
	 * descriptors come.
	 */
	int (*request)(struct vnic_transport *transport, union vnic_message *message, uint32_t len,
		       struct vnic_passed *passed);
	/* Sends a message that has no answer, as vnic_driver_set_qpn: never waits. */
	int (*post)(struct vnic_transport *transport, const void *message, uint32_t len);
	/* The driver has stored a producer register: wakes the device if it sleeps. */
	void (*kick)(struct vnic_transport *transport);
	/* As vnic_driver_isolate. Replaces BAR0 by private memory, too. */
	void (*isolate)(struct vnic_transport *transport);
	/*
	 * Releases descriptors and mappings without a message to the device. True: the caller frees
	 * the driver, and uses the transport no more. False: this is a forked child, in which an
	 * interrupted request may still use the structures of the transport and the driver. Then
	 * neither is ever freed.
	 */
	bool (*close)(struct vnic_transport *transport);
};

struct vnic_transport {
	const struct vnic_transport_ops *ops;
	void *bar0;    /* mapped: producer and mask registers are stored there */
	int irq_fd;    /* the stream socket of interrupts, as vnic_driver_irq_fd; -1 = none */
	int ctl_fd;    /* hangs up when the device ends; -1 = none */
	int notice_fd; /* readable when a notice or an introduction came; -1 = none */
	int doorbell;  /* wakes the device; -1 = none */
	int spare;     /* its number stays free for the driver at the limit of descriptors */
};

/* Creates a driver and activates the NIC. The driver owns the transport, also on failure. */
int vnic_driver_open(struct vnic_transport *transport, uint16_t mtu, struct vnic_driver **drv);

#endif
