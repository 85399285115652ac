/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The driver's path to its device. The driver knows registers and descriptors only; a transport
 * carries them. shm.c carries them over a UNIX socket and shared memory; tests have another one,
 * which leaves out the operations that may be NULL.
 */
#ifndef URXE_VNIC_TRANSPORT_H
#define URXE_VNIC_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/attach_protocol.h>
#include <vnic/inbox.h>

struct vnic_driver;
struct vnic_transport;

struct vnic_transport_ops {
	/* Allocates zeroed memory that the device sees at address 0; called once. */
	int (*memory)(struct vnic_transport *transport, uint64_t size, void **memory);
	/* Writes and reads registers of BAR1, which have effects or return answers. */
	int (*reg_write)(struct vnic_transport *transport, uint32_t offset, uint32_t value);
	int (*reg_read)(struct vnic_transport *transport, uint32_t offset, uint32_t *value);
	/* The driver has stored a producer register: wakes the device if it sleeps. */
	void (*kick)(struct vnic_transport *transport);
	/* As vnic_driver_resolve. */
	int (*resolve)(struct vnic_transport *transport, uint8_t sgid_index, const uint8_t dgid[16],
		       struct vnic_next_hop *hop);
	/* As vnic_driver_register if `connected`, else as vnic_driver_unregister. */
	int (*remote)(struct vnic_transport *transport, bool connected, uint32_t local_qpn,
		      const uint8_t dgid[16], uint32_t qpn);
	/* QPN_ADD, QPN_REMOVE or QPN_QUERY: returns the status. NULL: -EOPNOTSUPP. */
	int (*qpn)(struct vnic_transport *transport, const struct vnic_attach_qpn *request);
	/* QPN_SET: sends it without a wait. NULL: -EOPNOTSUPP. */
	int (*set_qpn)(struct vnic_transport *transport, const struct vnic_attach_qpn *message);
	/* As vnic_driver_lease. */
	int (*lease)(struct vnic_transport *transport, uint32_t *qpn_first);
	/*
	 * As vnic_driver_uplink; NULL: -ENODEV. With a negative answer->status, as
	 * vnic_driver_decline_uplink.
	 */
	int (*uplink)(struct vnic_transport *transport, struct vnic_attach_uplink *answer,
		      int fds[VNIC_UPLINK_SOCKETS]);
	/* Returns the descriptors of a new inbox, which the caller then owns. */
	int (*make_inbox)(struct vnic_transport *transport, int fds[VNIC_INBOX_FDS]);
	/*
	 * Passes the descriptors of an inbox from an earlier daemon to the device; the caller still
	 * owns them.
	 */
	int (*inbox)(struct vnic_transport *transport, const int fds[VNIC_INBOX_FDS]);
	/* Returns the descriptors of another process's inbox, which the caller then owns. */
	int (*introduce)(struct vnic_transport *transport, const uint8_t mac[6], uint32_t qpn,
			 int fds[VNIC_INBOX_FDS]);
	/* As vnic_driver_notice. */
	bool (*notice)(struct vnic_transport *transport, struct vnic_attach_port *port,
		       int *question);
	/* As vnic_driver_introduction. */
	bool (*introduction)(struct vnic_transport *transport, uint32_t *qpn,
			     int fds[VNIC_INBOX_FDS]);
	/* As vnic_driver_record; NULL: the device never asks for a recording. */
	bool (*record)(struct vnic_transport *transport, int *ring);
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
};

/* Creates a driver and activates the NIC. The driver owns the transport, also on failure. */
int vnic_driver_open(struct vnic_transport *transport, uint16_t mtu, struct vnic_driver **drv);

#endif
