/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Driver side of the vNIC: does what a guest's vmxnet3 driver does.
 *
 * Threads: any thread may call the functions from "Requests to the daemon" to "Without a request"
 * (except vnic_driver_set_qpn and vnic_driver_qpns_handled), also while another thread uses the
 * driver; the driver executes them one after the other. Any thread may wait on the descriptor of
 * vnic_driver_irq_fd and read it. All other functions are for one thread at a time. While a driver
 * is detached or abandoned no thread may use it.
 *
 * Functions that return int give 0 or a negative errno value. Pointers to a driver are not NULL,
 * except where a comment allows it. A MAC is 6 bytes and a GID 16 bytes in network byte order; QPNs
 * are 24 bits in host byte order.
 */
#ifndef URXE_VNIC_DRIVER_H
#define URXE_VNIC_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/attach_protocol.h>
#include <vnic/frame.h>
#include <vnic/inbox.h>

struct vnic_driver;

/*
 * Attaches to the urxed that listens in run_dir and activates the NIC, with a masked interrupt. On
 * success *welcome has the identity of this process. -EPROTO: the daemon speaks another version;
 * -ETIMEDOUT: no answer for 5 s; other errors: vnic_attach_connect, vnic_attach_welcome.status.
 */
int vnic_driver_attach(const char *run_dir, struct vnic_attach_welcome *welcome,
		       struct vnic_driver **drv);
/*
 * As vnic_driver_attach, for a process that an earlier daemon, or this one, has welcomed as `was`:
 * it gets all its blocks of QPNs again. -EPERM: the blocks are not the process's any more. -EBUSY:
 * this daemon has not handled the end of the earlier connection yet.
 * `old`, or NULL: the driver of the earlier daemon, which has ended. As soon as a daemon listens,
 * old's descriptors are closed, as many as the attachment opens: a process at its limit of
 * descriptors can attach again. No other thread uses `old`; all its requests fail afterwards.
 */
int vnic_driver_claim(const char *run_dir, const struct vnic_attach_welcome *was,
		      struct vnic_driver *old, struct vnic_attach_welcome *welcome,
		      struct vnic_driver **drv);
/*
 * As vnic_driver_attach, for a process that restores saved queue pairs: its first block of QPNs is
 * the one that begins at qpn_first. Further errors: struct vnic_attach_lease.
 */
int vnic_driver_demand(const char *run_dir, uint32_t qpn_first, struct vnic_attach_welcome *welcome,
		       struct vnic_driver **drv);
/*
 * As vnic_driver_attach, for the device process (urxe vm) of a virtual machine that has the MAC.
 * `was`: as for vnic_driver_claim, or NULL for the first attachment. The NIC has the host's MAC;
 * the frames of the machine's own NIC do not pass through it.
 */
int vnic_driver_attach_machine(const char *run_dir, const uint8_t mac[6],
			       const struct vnic_attach_welcome *was,
			       struct vnic_attach_welcome *welcome, struct vnic_driver **drv);
/* Quiesces the NIC, detaches and frees it. */
void vnic_driver_detach(struct vnic_driver *drv);
/*
 * Closes the driver's descriptors and mappings, and tells the device nothing. Frees *drv, except in
 * a forked child: a signal handler may have forked during a request, which still uses *drv. That
 * request then fails in the child. The parent's connection goes on. NULL is allowed.
 */
void vnic_driver_abandon(struct vnic_driver *drv);
/*
 * In a forked child, before vnic_driver_abandon: replaces the memory that the device sees by zeroed
 * private memory. All later requests fail in the child. That includes a request that was waiting
 * for another thread's request when a signal handler forked. NULL is allowed.
 */
void vnic_driver_isolate(struct vnic_driver *drv);

/*
 * Returns up to n received frames, in order. They stay valid, and their buffers in use, until
 * vnic_driver_rx_release has released them. The device may still write to them: read each header
 * byte once.
 */
uint32_t vnic_driver_rx(struct vnic_driver *drv, struct vnic_frame *frames, uint32_t n);
/* Gives the buffers of the n oldest received frames back to the device. */
void vnic_driver_rx_release(struct vnic_driver *drv, uint32_t n);

/* Reserves up to n free transmit buffers, in ring order, and returns their number. Each has room
 * for an MTU-sized frame. */
uint32_t vnic_driver_tx_reserve(struct vnic_driver *drv, struct vnic_frame *frames, uint32_t n);
/* Sends the first n of the buffers reserved last, with the lengths in frames; wakes the device. */
void vnic_driver_tx_commit(struct vnic_driver *drv, const struct vnic_frame *frames, uint32_t n);
/*
 * While `held` is set, a commit of one frame of at most 128 bytes rings no doorbell: a device that
 * sleeps leaves the frame in the ring, a device that is awake sends it. The next commit of several
 * frames or of a long one rings the doorbell. Once `held` is cleared, vnic_driver_tx_wake rings it
 * if a frame waits.
 */
void vnic_driver_tx_hold(struct vnic_driver *drv, bool held);
void vnic_driver_tx_wake(struct vnic_driver *drv);
/* Whether a frame was committed for which the doorbell has not been rung yet. */
bool vnic_driver_tx_due(const struct vnic_driver *drv);
/* The number of times that the driver has rung the doorbell. A ring takes a system call if the
 * device sleeps. */
uint32_t vnic_driver_tx_doorbells(const struct vnic_driver *drv);

/*
 * The interrupt: a descriptor for poll(2). It becomes readable when the unmasked NIC has received
 * frames, or has freed transmit buffers after vnic_driver_tx_reserve gave fewer than requested; it
 * hangs up when the device ends. An interrupt masks itself (vmxnet3's auto-mask mode). Any thread
 * may read the descriptor: a 64-bit word for each interrupt, as from an eventfd; a read never
 * blocks.
 */
int vnic_driver_irq_fd(const struct vnic_driver *drv);
void vnic_driver_irq_mask(struct vnic_driver *drv);
/* True: received frames or freed transmit buffers are there already, and may raise no interrupt. */
bool vnic_driver_irq_unmask(struct vnic_driver *drv);

/* Sets whether the NIC receives multicast frames, of any group; initially it does not. A change
 * waits for the daemon's answer. */
void vnic_driver_set_multicast(struct vnic_driver *drv, bool on);
/* Stores the choice without asking the daemon. True: it is new, so vnic_driver_apply_multicast must
 * follow. */
bool vnic_driver_choose_multicast(struct vnic_driver *drv, bool on);

/*
 * True: the device has written an invalid completion, such as one of a descriptor that it was not
 * given. The driver then receives and frees nothing any more.
 */
bool vnic_driver_broken(const struct vnic_driver *drv);

/*
 * From now on the driver calls `place` for each descriptor that the driver or an inbox opens or
 * receives, and uses the result: `fd`, or a duplicate that replaces `fd`. `place` returns a
 * negative `fd` unchanged and keeps errno. liburxe keeps the numbers of its descriptors away from
 * the program by this function. Call vnic_driver_place_fds once, before any thread attaches: no
 * lock protects `place`. netdev and session have functions like this one, because none of the three
 * may include another's headers.
 */
void vnic_driver_place_fds(int (*place)(int fd));

/* A descriptor for poll(2): it hangs up (POLLHUP) when the daemon has ended. */
int vnic_driver_ctl_fd(const struct vnic_driver *drv);

/*
 * From now on each request waits for so many seconds until the daemon answers; before, 5 s. A
 * signal begins the wait again. A request that gets no answer in time returns -ETIMEDOUT and ends
 * the connection to the daemon. vnic_driver_detach() waits for 5 s.
 */
int vnic_driver_limit_wait(const struct vnic_driver *drv, unsigned int seconds);

/* Readable when a message of enum vnic_notice_type is pending; -1: the transport has no notices. */
int vnic_driver_notice_fd(const struct vnic_driver *drv);
/*
 * Sets *port to the newest state of the port; false: the daemon has sent none since the last call,
 * and *port is unchanged. In both cases *question is set: a socket for the answer to a question
 * (struct vnic_attach_state), which the caller closes, or -1. Never blocks.
 */
bool vnic_driver_notice(struct vnic_driver *drv, struct vnic_attach_port *port, int *question);

/*
 * --- Requests to the daemon. They block for its answer. Any thread may call them; calls wait for
 * each other. Besides the errors below: -ETIMEDOUT: no answer in time (vnic_driver_limit_wait);
 * -ECONNRESET, -EPIPE: the daemon has ended; -EPROTO: a malformed answer. The connection to the
 * daemon then ends, except after an answer that is malformed only in its values. -EMFILE: the
 * process had no number free for a descriptor of the answer; the connection goes on.
 */

/* Has the daemon apply the last choice of vnic_driver_choose_multicast. */
int vnic_driver_apply_multicast(struct vnic_driver *drv);

/*
 * Asks for the next hop from the source address at sgid_index of vnic_attach_port.gids to dgid. ARP
 * or ND may take 4 s. Errors: struct vnic_attach_resolve.
 */
int vnic_driver_resolve(struct vnic_driver *drv, uint8_t sgid_index, const uint8_t dgid[16],
			struct vnic_next_hop *hop);

/*
 * Registers the remote queue pair to which a queue pair of this process (RC, UC) is connected. From
 * now on the daemon forwards the packets of the local one; within the host, from when the remote
 * one is registered likewise. Calls are counted: each needs its own vnic_driver_unregister.
 * -ENOSPC: too many; -EINVAL: no valid QPN; -EACCES: local_qpn is neither leased to nor added by
 * this process.
 */
int vnic_driver_register(struct vnic_driver *drv, uint32_t local_qpn, const uint8_t dgid[16],
			 uint32_t qpn);
/* Takes back one call of vnic_driver_register. -ENOENT: there is none to take back. */
int vnic_driver_unregister(struct vnic_driver *drv, uint32_t local_qpn, const uint8_t dgid[16],
			   uint32_t qpn);

/*
 * Tells the daemon the QPN of a queue pair of this process. While the device has an HCA, the owner
 * calls this for each of its queue pairs, whether the HCA has chosen the QPN or it is one of the
 * lease. From now on the daemon treats the QPN as one of the process's lease: it delivers frames to
 * the QPN to this process, and lets the process send from the QPN. `flags`: VNIC_QPN_* of
 * attach_protocol.h. A second call for the QPN changes them; each call needs a
 * vnic_driver_remove_qpn of its own. -EEXIST: another process has added or leased the QPN, so only
 * the HCA can execute the queue pair; -ENOSPC: too many; -EINVAL: no valid QPN, or unknown flags.
 */
int vnic_driver_add_qpn(struct vnic_driver *drv, uint32_t qpn, uint32_t flags);
/*
 * Changes the flags of an added QPN. Unlike the requests above, this function never waits, not
 * even for another thread's request, and is for one thread at a time. The daemon applies the flags
 * before it handles any later request. -EAGAIN: the daemon has not read earlier messages; the flags
 * are unchanged. Other errors: the daemon has gone.
 */
int vnic_driver_set_qpn(struct vnic_driver *drv, uint32_t qpn, uint32_t flags);
/* Whether the daemon has handled all successful calls of vnic_driver_set_qpn. Reads
 * shared memory only, so it never waits. */
bool vnic_driver_qpns_handled(const struct vnic_driver *drv);
/* Undoes one vnic_driver_add_qpn; the last removal takes the QPN from the process. -ENOENT: the
 * process has not added the QPN. */
int vnic_driver_remove_qpn(struct vnic_driver *drv, uint32_t qpn);
/*
 * Whether the peer of a connection is a queue pair of this host and user that was added as
 * reachable: 0; -ENOENT: it is not; -EBUSY: the daemon does not know the user yet, so ask again.
 */
int vnic_driver_query_qpn(struct vnic_driver *drv, const uint8_t dgid[16], uint32_t qpn);

/*
 * Leases another block of VNIC_LEASE_QPNS QPNs for this process: the one that begins with
 * *qpn_first, or any block if *qpn_first is 0. After success *qpn_first is its first QPN. Errors:
 * struct vnic_attach_lease.
 */
int vnic_driver_lease(struct vnic_driver *drv, uint32_t *qpn_first);

/*
 * Asks for packet sockets on the uplink. Returns their number and the descriptors, which the caller
 * owns, with the size of their rings in *answer; or the status of struct vnic_attach_uplink.
 */
int vnic_driver_uplink(struct vnic_driver *drv, struct vnic_attach_uplink *answer,
		       int fds[VNIC_UPLINK_SOCKETS]);
/* Tells the daemon that this process cannot use the sockets of vnic_driver_uplink, or has closed
 * them, for a reason (a negative errno value): its packets from the uplink come by the NIC again.
 */
void vnic_driver_decline_uplink(struct vnic_driver *drv, int reason);

/*
 * Gets a new inbox from the daemon, once. `mtu`: vnic_attach_welcome.mtu. The daemon passes the
 * inbox to senders after vnic_inbox_publish.
 */
int vnic_driver_make_inbox(struct vnic_driver *drv, uint16_t mtu, struct vnic_inbox **inbox);
/*
 * Passes the inbox that an earlier daemon has made to this daemon, once. Waits up to 5 s for each
 * of two answers.
 */
int vnic_driver_set_inbox(struct vnic_driver *drv, const struct vnic_inbox *inbox);
/*
 * Asks for the inbox of the process that has a QPN of the device with that MAC (the host's, or a
 * virtual machine's). The caller owns the descriptors, for vnic_outbox_open. -ENOENT: no such
 * process or inbox; -EPERM: the process belongs to another user; -EBUSY: ask again later, as the
 * daemon does not know the user yet.
 */
int vnic_driver_introduce(struct vnic_driver *drv, const uint8_t mac[6], uint32_t qpn,
			  int fds[VNIC_INBOX_FDS]);

/* --- Without a request */

/*
 * An introduction without a request: the daemon introduces a process to which this one sends frames
 * through the switch. True: *qpn is a QPN of the other process, and fds are the descriptors of its
 * inbox, which the caller owns; false: there is none. Call it once after each vnic_driver_notice.
 */
bool vnic_driver_introduction(struct vnic_driver *drv, uint32_t *qpn, int fds[VNIC_INBOX_FDS]);
/*
 * Takes the daemon's newest request to begin or end a recording of the engine. True: *ring is the
 * descriptor of a ring (record_ring.h), which the caller owns, or -1: the recording ends. False: no
 * request came since the last call. Call it once after each vnic_driver_notice.
 */
bool vnic_driver_record(struct vnic_driver *drv, int *ring);
/* Whether the daemon permits frames to bypass it; read it for each burst. */
bool vnic_driver_bypass_allowed(const struct vnic_driver *drv);

/*
 * Stores a copy of a frame of at most VNIC_LAST_FRAME_MAX bytes for the daemon: if this process
 * ends before it calls vnic_driver_clear_last_frame, even by SIGKILL, the daemon sends the frame.
 * The driver stores one frame at a time: call this only while none is stored.
 */
void vnic_driver_set_last_frame(struct vnic_driver *drv, const uint8_t *data, uint32_t len);
void vnic_driver_clear_last_frame(struct vnic_driver *drv);

#endif
