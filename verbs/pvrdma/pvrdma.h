/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * VMware's paravirtual RDMA device (PVRDMA, PCI 15ad:0820) for the engine: a driver in a virtual
 * machine sets up queues in its memory, and the engine executes their requests on that memory.
 *
 * The device performs no I/O, reads no clock and has no thread: the caller passes register
 * accesses, frames and the time, in nanoseconds from any fixed point. One thread at a time may use
 * a device and its guest memory. Functions that return int give 0 or a negative errno value.
 *
 * The device trusts nothing that the guest can write: it copies each descriptor, index and address
 * once and checks the copy. Malformed input increments a counter; it is ignored, or it fails the
 * command, the request or the queue.
 *
 * Sources: <rdma/vmw_pvrdma-abi.h>, and the behaviour of Linux' vmw_pvrdma driver and rdma-core's
 * vmw_pvrdma provider.
 */
#ifndef URXE_PVRDMA_H
#define URXE_PVRDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxe/counters.h>
#include <rxe/rxe.h>
#include <vnic/guest_memory.h>

/* The caller serves BAR0: the MSI-X table of PVRDMA_VECTORS vectors. */
#define PVRDMA_VECTORS  3
#define PVRDMA_BAR_REG  1
#define PVRDMA_REG_SIZE 4096u /* bytes of BAR1 */
#define PVRDMA_BAR_UAR  2
#define PVRDMA_UAR_PAGES \
	1024u /* pages of BAR2; page 0 is the driver's, each user context has one */
#define PVRDMA_UAR_SIZE (PVRDMA_UAR_PAGES * UINT64_C(4096)) /* bytes of BAR2 */

struct pvrdma;

/* The machine's NIC, a vmxnet3 on the same link, as its driver has set it. */
struct pvrdma_nic {
	bool active;  /* the driver has activated it: the interface is up */
	uint32_t mtu; /* bytes; only if it is active */
	/* Frames to this address are for the device, too: the NIC's driver may have set another
	 * address than pvrdma_attr.mac, and peers find that one by ARP. */
	uint8_t mac[6];
};

/* Callbacks of the process that owns the device. They must not call functions of the device. */
struct pvrdma_owner {
	/* A number for a new queue pair, unique on the host; 0: the device chooses one itself. */
	uint32_t (*take_qpn)(void *ctx);
	/* Takes back a number of take_qpn or demand_qpn. */
	void (*free_qpn)(void *ctx, uint32_t qpn);
	/*
	 * pvrdma_restore calls this to take `qpn` for a restored queue pair, in place of take_qpn.
	 * A negative errno value ends the restoration. -EADDRINUSE: another queue pair of this
	 * machine has the number. If a process of the host has it, the function logs that and
	 * returns 0. NULL: the owner does not choose numbers.
	 */
	int (*demand_qpn)(void *ctx, uint32_t qpn);
	/*
	 * Called before a queue pair of the driver goes to RTR: it will be connected to the queue
	 * pair `qpn` of the device with that MAC. RC only.
	 */
	void (*connecting)(void *ctx, const uint8_t mac[6], uint32_t qpn);
	/* Sets *nic to the NIC's state. NULL: the NIC counts as active, with the device's MTU. */
	void (*nic)(void *ctx, struct pvrdma_nic *nic);
	/* urxe_ops.may_reference and urxe_ops.pull of the engine; used only if `table` and `pull`
	 * are set. */
	bool (*may_reference)(void *ctx, const uint8_t mac[6], uint32_t qpn);
	bool (*pull)(void *ctx, const struct urxe_reference *reference,
		     const struct urxe_extent *to, uint32_t n);
	void *ctx;
	/*
	 * The engine's copy transport (struct urxe_dev_attr); table NULL: none. A call of
	 * pvrdma_reg_write, pvrdma_reset, pvrdma_set_bus_master or pvrdma_memory_removed may
	 * withdraw memory or rights that a peer's copy still uses. The caller keeps the guest
	 * waiting after each such call, until copy_ops->settled returns true.
	 */
	const struct urxe_copy_ops *copy_ops;
	void *copy_ctx;
	struct urxe_copy_table *table;
};

/*
 * The HCA of the host, which the device's owner opens (docs/hca.md). The callbacks must not call
 * functions of the device.
 */
struct pvrdma_hca {
	/* Entry `index` of the machine's GID table; gid NULL: it has none. */
	void (*set_gid)(void *ctx, uint32_t index, const struct urxe_gid *gid, bool v1);
	/* Whether the HCA has the GID of that entry now, with that RoCE version. */
	bool (*has_gid)(void *ctx, uint32_t index);
	/*
	 * Prepares the HCA for datagrams or a connection of queue pairs of the PD `pd` along the
	 * path, because the HCA may have to look for the peer's MAC first, which takes up to a
	 * second. 0: the HCA can use the path. -EAGAIN: not yet; the request or the command waits,
	 * and the owner calls pvrdma_hca_prepared when this may have changed. Other errors,
	 * never -ENOMEM or -EINPROGRESS: the request or the command fails. `connects`: it is for a
	 * connection. All commands of the driver wait for the preparation of one connection.
	 */
	int (*prepare)(void *ctx, uint32_t pd, const struct urxe_path *path, bool connects);
	/* `attach` calls urxe_offload_set for the engine; `detach` calls urxe_offload_unset for
	 * it. */
	void (*attach)(void *ctx, struct urxe_dev *engine);
	void (*detach)(void *ctx);
	void *ctx;
	/* Limits of the HCA, each at least 1. */
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_rd_atomic;      /* as responder */
	uint32_t max_init_rd_atomic; /* as requester */
	bool atomics;                /* the HCA executes atomics */
};

struct pvrdma_attr {
	struct vnic_guest_memory *memory; /* the caller's; outlives the device */
	uint8_t mac[6];
	uint32_t mtu; /* longest Ethernet payload of the link, bytes */
	/*
	 * BAR2 as memory that the guest has mapped, PVRDMA_UAR_SIZE bytes: the guest's doorbells
	 * are stores to it, which pvrdma_poll finds. All bytes are 0 at first; before
	 * pvrdma_restore, it may instead be the memory of the device that was saved. NULL: the
	 * caller passes each doorbell by pvrdma_reg_write.
	 */
	void *uar;
	bool roce_v1;  /* all GIDs are RoCEv1; false: all are RoCEv2 */
	uint64_t seed; /* for the random bits of keys */
	/* Delivers the interrupt of a vector, 0 to PVRDMA_VECTORS - 1. Must not call the device. */
	void (*interrupt)(void *ctx, uint32_t vector);
	void *ctx;
	const struct pvrdma_owner *owner; /* NULL: none; lives as long as the device */
};

/* Creates a device, which copies *attr. 0; -EINVAL: no path MTU fits attr->mtu; -ENOMEM. */
int pvrdma_create(const struct pvrdma_attr *attr, struct pvrdma **dev);
void pvrdma_destroy(struct pvrdma *dev);
/*
 * Brings the device into the state after its creation. Only these stay: the link's state, the HCA,
 * the counters, the VLANs learned by pvrdma_nic_sent, the numbers from which new QPNs and keys are
 * derived, the right to access memory (pvrdma_set_bus_master), and frames of queue pairs that were
 * destroyed before, for pvrdma_output. The device touches no guest memory until the driver sets it
 * up again.
 */
void pvrdma_reset(struct pvrdma *dev);

/*
 * A 32-bit access to a register of BAR1 or a doorbell of BAR2. The offset is in the BAR, in bytes,
 * a multiple of 4. -EINVAL: there is no such register; the access has no effect, and a read gives
 * 0.
 *
 * When a write that executes a command returns, the response is stored, unless the device is not
 * active, does not know the command, or may not or cannot access the slots of command and response.
 * Vector 0 is raised, too, if Linux' driver waits for this response: not after a failure that ERR
 * shows, and not for commands that destroy, bind, or modify an SRQ. Only a MODIFY_QP may be
 * executed later: when the HCA is prepared (pvrdma_hca.prepare) or gone, if no other command comes
 * before. After any write, call pvrdma_output and pvrdma_flush.
 */
int pvrdma_reg_write(struct pvrdma *dev, uint64_t now, uint32_t bar, uint32_t offset,
		     uint32_t value);
int pvrdma_reg_read(struct pvrdma *dev, uint32_t bar, uint32_t offset, uint32_t *value);

/*
 * Whether the frame is RoCE for this device: to its MAC or that of the NIC; PVRDMA has no
 * multicast. False while the driver has not activated the device or forbids it to access memory
 * (pvrdma_set_bus_master), or while the NIC is down. The caller gives all other frames to the
 * vmxnet3 of the same machine.
 */
bool pvrdma_wants(const struct pvrdma *dev, const uint8_t *frame, uint32_t len);
/* Passes received frames to the engine; those for which pvrdma_wants is false are dropped. The
 * contents of the frames must not change during the call. */
void pvrdma_input(struct pvrdma *dev, uint64_t now, const struct urxe_frame *frames, uint32_t n);
/*
 * The machine's NIC sends a frame, which the device only reads: it learns from ARP and neighbour
 * discovery which VLAN the machine uses an address in.
 */
void pvrdma_nic_sent(struct pvrdma *dev, const uint8_t *frame, uint32_t len);
/*
 * The station `mac` was absent and is back: passes its announcement to the engine
 * (rxe/announcement.h). The device's own MAC means that this machine has migrated. Does nothing
 * while the driver has not activated the device or forbids it to access memory
 * (pvrdma_set_bus_master).
 */
void pvrdma_station_returned(struct pvrdma *dev, uint64_t now, const uint8_t mac[6]);
/*
 * Builds up to max frames to send in the caller's buffers, as urxe_output does, and returns their
 * number. Frames between queue pairs of this device stay inside. The work of one call is limited,
 * so pvrdma_next_deadline may be 0 after a call that gave fewer than max frames. The members data
 * and room may be permuted among the frames.
 */
uint32_t pvrdma_output(struct pvrdma *dev, uint64_t now, struct urxe_frame *frames, uint32_t max);
/* The time at which the caller has to call pvrdma_poll, pvrdma_output and pvrdma_flush next; 0: at
 * once; URXE_NEVER: not before another event. */
uint64_t pvrdma_next_deadline(const struct pvrdma *dev);
/* Writes the due CQ notifications and asynchronous events to their rings, as far as these have
 * room. Raises vectors 1 and 2, once each, for rings that got some. Does nothing while the driver
 * permits no access to memory. */
void pvrdma_flush(struct pvrdma *dev);
/*
 * Looks for doorbells in pvrdma_attr.uar. Looks in the rings of some queue pairs, which take turns,
 * for requests without a doorbell; in those of all queue pairs after pvrdma_resume, and when the
 * driver has granted access to memory. Sends the driver the event of pvrdma_set_link that is due.
 * Does nothing while the driver permits no access to memory. True: the caller has to call
 * pvrdma_output and pvrdma_flush.
 */
bool pvrdma_poll(struct pvrdma *dev, uint64_t now);

/*
 * Call pvrdma_memory_added after vnic_guest_memory_map, and pvrdma_memory_removed before
 * vnic_guest_memory_unmap; size UINT64_MAX: all memory from `addr` on. The device never touches
 * removed memory again: queues with a ring in it fail, and requests of peers to it end in remote
 * access errors. While the device is paused or the driver permits no access to memory, it writes
 * nothing to the rest of the memory either: its queue pairs fail when the pause has ended
 * and the driver permits access again. A peer's copy may go on until copy_ops->settled (struct
 * pvrdma_owner).
 */
void pvrdma_memory_added(struct pvrdma *dev);
void pvrdma_memory_removed(struct pvrdma *dev, uint64_t addr, uint64_t size);

/*
 * The driver withdraws the device's right to access memory (`on` false), or grants it; the device
 * has the right after creation, and a reset does not change it. Without it the device reads only
 * the command slot, and writes no memory: requests, completions, events and interrupts wait,
 * received packets are dropped, and registers that need memory report EIO. Only commands that
 * destroy are executed, without a response. The rights of peers to copy are withdrawn, as by
 * pvrdma_memory_removed. Queue pairs and regions that exist now exchange packets only, also after
 * the right returns, until a queue pair is modified or a region registered again. Queue pairs that
 * the HCA executes fail. When the right returns, the driver gets the event of pvrdma_set_link if it
 * knows another state of the link. All CQs are armed then, unless the device is paused, because a
 * doorbell may have armed one meanwhile; call pvrdma_flush. A queue pair that loses its rings
 * meanwhile fails when the right returns.
 */
void pvrdma_set_bus_master(struct pvrdma *dev, bool on);

/*
 * The host has this HCA from now on; NULL: it has none any more. The caller keeps *hca valid until
 * the next call. While the HCA has one of the machine's GIDs, it gets new queue pairs and shared
 * receive queues of the machine's programs. From the time when it first has such a GID, it also
 * gets new regions, except for fast registration. Queue pairs of an HCA that goes are as after
 * urxe_offload_unset. The driver sees the limits of the HCA that the device has when the driver
 * loads the shared region.
 */
void pvrdma_set_hca(struct pvrdma *dev, const struct pvrdma_hca *hca);
/* Call it when the HCA's table of GIDs has changed: the engine may get the HCA now. */
void pvrdma_hca_gids_changed(struct pvrdma *dev);
/* Call it when the owner has passed completions of the HCA to the engine: posts requests that
 * waited for room. Then call pvrdma_output and pvrdma_flush. */
void pvrdma_hca_polled(struct pvrdma *dev, uint64_t now);
/* Whether the driver's last command waits until the HCA is prepared (pvrdma_hca.prepare). */
bool pvrdma_command_waits(const struct pvrdma *dev);
/* Call it when the HCA may be prepared for further paths (pvrdma_hca.prepare): executes the command
 * that waited for that, and posts datagrams that did. Then call pvrdma_output and pvrdma_flush. */
void pvrdma_hca_prepared(struct pvrdma *dev, uint64_t now);
/* The engine, for a recording (rxe/record.h); NULL: the driver has not activated the device. */
struct urxe_dev *pvrdma_engine(struct pvrdma *dev);
/* Whether peers may have rights to copy: the device is active and not paused, and the driver
 * permits access to memory. */
bool pvrdma_may_grant(const struct pvrdma *dev);
/* Whether the engine has the HCA now. */
bool pvrdma_has_hca(const struct pvrdma *dev);
/* Whether the queue pair, whose ctx in the engine is `of`, is one of a program of the machine, and
 * not one of the machine's kernel. */
bool pvrdma_qp_is_of_program(const void *of);
/* Marks all guest memory to which the HCA may write as changed, in the log of changed pages. */
void pvrdma_report_hca_writes(struct pvrdma *dev);

/*
 * Tells the device that the link has gone up or down; the link is up after creation. If the driver
 * knows another state, the device sends the driver an event, as soon as device and NIC are active,
 * the driver permits access to memory, and the device is not paused (pvrdma_poll). A driver that
 * sets up the NIC tells its users that the port is active; the event that the link is down comes at
 * least 10 ms later, and at least 10 ms after pvrdma_resume, because the pause may have stopped the
 * driver meanwhile. Each further pvrdma_resume begins the 10 ms anew.
 */
void pvrdma_set_link(struct pvrdma *dev, bool up);

/* --- Live migration. The counters (pvrdma_counters) are not part of the saved state. */

/*
 * Prepares the device for pvrdma_save or pvrdma_resume, which the caller calls next. Either the
 * guest's processors have stopped (migration), or the guest runs on and its memory stays where it
 * is (another process of this host takes the device over). Before this call the caller calls
 * pvrdma_output until it gives no frame. Handles the doorbells that the guest has left in
 * pvrdma_attr.uar, and writes the notifications that are due. Withdraws the rights of peers to
 * copy, as pvrdma_memory_removed does: pvrdma_save needs copy_ops->settled. The engine loses its
 * HCA until pvrdma_resume: queue pairs fail if the HCA still executes them.
 */
void pvrdma_pause(struct pvrdma *dev, uint64_t now);
/*
 * Lets the device go on: after pvrdma_pause, also if pvrdma_save followed, and after
 * pvrdma_restore. Raises the interrupts again whose causes the driver has not read in ICR.
 */
void pvrdma_resume(struct pvrdma *dev, uint64_t now);
/*
 * Writes the state of a paused device, without the contents of guest memory, which hold the rings,
 * the completions that the driver has not read, and the event rings. Events for which their ring
 * had no room, or that wait for pvrdma_set_bus_master or pvrdma_resume, are lost. The caller frees
 * *stream with free(3). -EBUSY: a peer still copies from or to the guest's memory; call it again
 * later. -ENOMEM.
 */
int pvrdma_save(struct pvrdma *dev, uint64_t now, uint8_t **stream, size_t *length);
/*
 * Gives the device the state in the stream; the device is paused then. The caller has mapped the
 * guest's memory at the guest addresses that it had for the saved device. Its contents may arrive
 * later: the device does not access it before pvrdma_resume. If the device was not active before,
 * doorbells in pvrdma_attr.uar remain there. On error the device is as after pvrdma_reset.
 * -EBADMSG: the stream is truncated or damaged, or its values contradict each other;
 * -EPROTONOSUPPORT: a later version of urxe has written it; -EINVAL: it is of a device with another
 * MAC or RoCE version, or a connection has a longer path MTU than the link has here, or a datagram
 * that was not sent yet is longer; -EFAULT: the guest has no memory where a ring or region has
 * some; -EADDRINUSE: two queue pairs have one QPN; -EFBIG: the engine would need more than
 * PV_MEMORY_MAX bytes (pvrdma_device.h); -ENOMEM.
 */
int pvrdma_restore(struct pvrdma *dev, uint64_t now, const uint8_t *stream, size_t length);

/* X(identifier, printed name, meaning) */
#define PVRDMA_COUNTER_LIST(X)                                                                \
	X(COMMANDS, "commands", "commands of the driver")                                     \
	X(COMMAND_ERRORS, "command_errors", "commands that failed")                           \
	X(REGISTER_BAD, "register_bad", "accesses to registers that do not exist")            \
	X(DOORBELLS, "doorbells", "doorbells")                                                \
	X(DOORBELL_BAD, "doorbell_bad", "doorbells of objects that the page does not own")    \
	X(DOORBELL_POLL, "doorbell_poll", "doorbells of programs that poll an empty CQ")      \
	X(SENDS, "sends", "send requests taken from rings")                                   \
	X(SENDS_BAD, "sends_bad", "send requests that were malformed")                        \
	X(RECVS, "recvs", "receive requests taken from rings")                                \
	X(RECVS_BAD, "recvs_bad", "receive requests that were malformed")                     \
	X(RING_BAD, "ring_bad", "indices of rings that were out of range")                    \
	X(PAGE_DIR_BAD, "page_dir_bad", "page directories with an address that is no memory") \
	X(HCA_MEMORY_FULL, "hca_memory_full", "regions refused: the HCA may pin no more")     \
	X(COMPLETIONS, "completions", "completions written to CQs")                           \
	X(CQ_OVERFLOWS, "cq_overflows", "completions for which a CQ had no room")             \
	X(NOTIFICATIONS, "notifications", "notifications of CQs")                             \
	X(NOTIFICATIONS_LATE, "notifications_late",                                           \
	  "attempts to notify of a CQ that found no room in the ring")                        \
	X(EVENTS, "events", "asynchronous events")                                            \
	X(EVENTS_LOST, "events_lost", "asynchronous events that the driver does not get")     \
	X(INTERRUPTS, "interrupts", "interrupts raised")                                      \
	X(RX_FRAMES, "rx_frames", "frames received")                                          \
	X(RX_UNWANTED, "rx_unwanted", "received frames that were not for the device")         \
	X(TX_FRAMES, "tx_frames", "frames sent")                                              \
	X(TX_DOWN, "tx_down", "frames dropped because the NIC was down")                      \
	X(LOOPBACK, "loopback", "frames between queue pairs of the device")                   \
	X(MEMORY_LOST, "memory_lost", "queues and regions that lost memory")

#define PVRDMA_COUNTER_ENUM(id, name, text) PVRDMA_##id,
enum pvrdma_counter { PVRDMA_COUNTER_LIST(PVRDMA_COUNTER_ENUM) PVRDMA_COUNTERS };
const char *pvrdma_counter_name(enum pvrdma_counter counter);
/* The device's counters since its creation, by enum pvrdma_counter. */
const uint64_t *pvrdma_counters(const struct pvrdma *dev);
/* The counters of the device's engine since its activation; all 0 while there is no engine. */
const struct urxe_counters *pvrdma_engine_counters(const struct pvrdma *dev);

/* Iterates over the queue pairs and regions of the driver: *at starts at 0; NULL at the end. */
const struct urxe_qp *pvrdma_next_qp(const struct pvrdma *dev, uint32_t *at);
const struct urxe_mr *pvrdma_next_mr(const struct pvrdma *dev, uint32_t *at);

/* Whether the driver has activated the device. */
bool pvrdma_active(const struct pvrdma *dev);

#endif
