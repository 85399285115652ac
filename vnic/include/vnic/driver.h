/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Driver side of the vNIC: what a guest's vmxnet3 driver does.
 *
 * One thread at a time may use a driver, except vnic_driver_irq_fd's descriptor,
 * on which any thread may wait. Functions that return int give 0 or a negative
 * errno value.
 */
#ifndef URXE_VNIC_DRIVER_H
#define URXE_VNIC_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/attach.h>
#include <vnic/frame.h>
#include <vnic/inbox.h>

struct vnic_driver;

/*
 * Attaches to the urxed that listens in run_dir and activates the NIC, its
 * interrupt masked. On success *welcome says who we are. -EPROTO: the daemon
 * speaks another version; otherwise errors are those of vnic_attach_connect.
 */
int vnic_driver_attach(const char *run_dir, struct vnic_attach_welcome *welcome,
		       struct vnic_driver **drv);
/*
 * The same for a process that an earlier daemon welcomed as `was`: it gets all its blocks of
 * QPNs again. -EPERM: they are not to be had.
 */
int vnic_driver_claim(const char *run_dir, const struct vnic_attach_welcome *was,
		      struct vnic_attach_welcome *welcome, struct vnic_driver **drv);
/* Quiesces the NIC, detaches and frees it. */
void vnic_driver_detach(struct vnic_driver *drv);
/* Forgets a driver inherited through fork, without a word to the device. */
void vnic_driver_abandon(struct vnic_driver *drv);
/*
 * In a forked child: replaces the memory that the device sees by zeroed private memory, until
 * vnic_driver_abandon. NULL is allowed.
 */
void vnic_driver_isolate(struct vnic_driver *drv);

/*
 * Up to n received frames, in order. They stay valid, and their buffers taken,
 * until vnic_driver_rx_release has given back as many. Whoever is at the other
 * side may still write to them: read each header byte once.
 */
uint32_t vnic_driver_rx(struct vnic_driver *drv, struct vnic_frame *frames, uint32_t n);
/* Gives the n oldest received frames back to the device. */
void vnic_driver_rx_release(struct vnic_driver *drv, uint32_t n);

/* Up to n free transmit buffers, in ring order; each has room for an MTU-sized frame. */
uint32_t vnic_driver_tx_reserve(struct vnic_driver *drv, struct vnic_frame *frames, uint32_t n);
/* Sends the first n of the buffers reserved last, with the lengths in frames; wakes the device. */
void vnic_driver_tx_commit(struct vnic_driver *drv, const struct vnic_frame *frames, uint32_t n);

/*
 * The interrupt: a descriptor to poll(2), readable once the unmasked NIC has
 * received or has freed transmit buffers after vnic_driver_tx_reserve gave fewer
 * than asked for; it hangs up when the device has gone. Delivery masks it
 * (vmxnet3's auto-mask mode). Any thread may read it empty: a 64-bit word each
 * interrupt, as from an eventfd; a read never blocks.
 */
int vnic_driver_irq_fd(const struct vnic_driver *drv);
void vnic_driver_irq_mask(struct vnic_driver *drv);
/* True where frames or freed buffers wait already: then there may be no interrupt for them. */
bool vnic_driver_irq_unmask(struct vnic_driver *drv);

/*
 * Whether multicast frames are to be received, of whatever group; at first none
 * are. A change is told to the daemon, and waits for its answer.
 */
void vnic_driver_set_multicast(struct vnic_driver *drv, bool on);

/* The device has completed what it was not given: nothing is received or freed any more. */
bool vnic_driver_broken(const struct vnic_driver *drv);

/* Readable (POLLHUP) when the daemon has gone. */
int vnic_driver_ctl_fd(const struct vnic_driver *drv);

/* Readable when the port has changed or a question waits; -1: neither ever comes. */
int vnic_driver_notice_fd(const struct vnic_driver *drv);
/*
 * What the port is now; false where the daemon has told nothing new since the last call.
 * *question is a socket to answer on, the caller's to close, or -1 (struct
 * vnic_attach_state). Never blocks.
 */
bool vnic_driver_notice(struct vnic_driver *drv, struct vnic_attach_port *port, int *question);

/*
 * Asks the daemon for the next hop to dgid as seen from source address sgid_index.
 * Blocks for ARP or ND, 3 s at most. Any thread; takes turns by itself.
 */
int vnic_driver_resolve(struct vnic_driver *drv, uint8_t sgid_index, const uint8_t dgid[16],
			struct vnic_next_hop *hop);

/*
 * A queue pair of ours is connected to the remote one (RC, UC): the daemon forwards its packets
 * from now on. Counted: each call wants its vnic_driver_unregister. -EADDRINUSE: another process is
 * connected to it; -ENOSPC: too many; -EINVAL: nobody can be. Both block for the daemon's answer.
 * Any thread; they take turns by themselves.
 */
int vnic_driver_register(struct vnic_driver *drv, const uint8_t dgid[16], uint32_t qpn);
int vnic_driver_unregister(struct vnic_driver *drv, const uint8_t dgid[16], uint32_t qpn);

/*
 * Another block of QPNs for this process. -ENOSPC: there is none for it. Blocks for the daemon's
 * answer. Any thread; takes turns by itself.
 */
int vnic_driver_lease(struct vnic_driver *drv, uint32_t *qpn_first);

/* --- Frames for other processes of this host, without the daemon (inbox.h). */

/* Gives the daemon this process's inbox to hand on, once; both use it from now on. */
int vnic_driver_set_inbox(struct vnic_driver *drv, const struct vnic_inbox *inbox);
/*
 * The inbox of the process that has a QPN, for vnic_outbox_open. -ENOENT: there is none;
 * -EPERM: it is another user's. Any thread; takes turns with vnic_driver_resolve.
 */
int vnic_driver_introduce(struct vnic_driver *drv, uint32_t qpn, int fds[VNIC_INBOX_FDS]);
/*
 * The daemon has introduced us unasked, to a process that our frames went to by the switch:
 * once after each vnic_driver_notice. The descriptors are the caller's.
 */
bool vnic_driver_introduction(struct vnic_driver *drv, uint32_t *qpn, int fds[VNIC_INBOX_FDS]);
/* Whether the daemon lets frames pass by it: to be asked for each burst. */
bool vnic_driver_direct_allowed(const struct vnic_driver *drv);

#endif
