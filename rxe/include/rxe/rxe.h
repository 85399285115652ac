/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The RoCE engine: RC, UC and UD transport of the InfiniBand Architecture over
 * RoCEv1 and RoCEv2, without I/O, clock, threads or globals.
 *
 * The owner passes frames, work requests and the time; the engine returns frames, completions and
 * the next deadline. Time is in nanoseconds from any fixed point; if a call passes an earlier time
 * than a previous one, the latest time counts. Calls on one device must not run in parallel.
 * Functions that return int return 0 or a negative errno value.
 */
#ifndef URXE_RXE_RXE_H
#define URXE_RXE_RXE_H

#include <stdint.h>

#include <rxe/cong.h>
#include <rxe/copy_transport.h>
#include <rxe/counters.h>
#include <rxe/types.h>

#define URXE_NEVER        UINT64_MAX
#define URXE_MAX_LINK_BPS UINT64_C(4000000000000)

struct urxe_dev;
struct urxe_extent;
struct urxe_mr;
struct urxe_mw;
struct urxe_fast_mr;
struct urxe_cq;
struct urxe_rq; /* a receive queue: a QP's own, or shared (SRQ) */
struct urxe_qp;

/*
 * Limits for a payload that a frame references instead of containing it, bytes. At 8 KiB the
 * receiver's copy is faster than packets of 4 KiB (11.5 instead of 8.6 GB/s, 1.3 instead of 1.9 us
 * one way); at 4 KiB it is slower (7.0 instead of 8.2 GB/s). Longer references than 256 KiB gain
 * nothing: messages of 256 KiB reach 28 GB/s with one reference, 23.5 GB/s with four.
 */
#define URXE_REFERENCE_MIN 8192u
#define URXE_REFERENCE_MAX (256u * 1024)
/*
 * Pieces of a payload that one frame references: 64 pages of 4 KiB are 256 KiB, and each segment of
 * a request may begin and end within a page. In the frame's buffer, the first URXE_REFERENCE_ROOM
 * bytes are reserved for the headers and what the owner adds; the list of pieces must fit the rest
 * (urxe_frame.room).
 */
#define URXE_REFERENCE_PIECES 128u
#define URXE_REFERENCE_ROOM   160u

struct urxe_reference;

/*
 * Callbacks of the engine. Each gets the `ctx` of its object. They run inside an engine call and
 * must not call the engine, unless their comment permits it.
 */
struct urxe_ops {
	/* Adds a completion. False: the queue is full; the CQ and its QPs enter the error state. */
	bool (*complete)(void *cq_ctx, const struct urxe_wc *wc);
	/* Send requests of the QP have left the queue without a completion, because they were not
	 * signaled. Called for the first of them only, until the owner calls urxe_sq_retired.
	 * Optional. */
	void (*send_retired)(void *qp_ctx);
	/* An HCA's completion of the SRQ was for a QP that is destroyed, or that the HCA no longer
	 * executes: urxe_rq_retired has changed without a completion. NULL: not called. */
	void (*recv_retired)(void *srq_ctx);
	/* An armed CQ has a completion; the CQ is disarmed now (IBA 11.4.2.2). */
	void (*comp_event)(void *cq_ctx);
	/* A receive queue is empty, at most half full, or below its limit: the callback calls
	 * urxe_post_recv for the requests that the application has queued and the owner has not
	 * passed to the engine. */
	void (*refill)(void *rq_ctx);
	/* obj_ctx is the ctx of the QP, CQ or SRQ of the event. */
	void (*async_event)(void *dev_ctx, enum urxe_async event, void *obj_ctx);
	/* Within urxe_output: whether the next frame, of a SEND to this path and QPN, may reference
	 * its payload. NULL: never. */
	bool (*may_reference)(void *dev_ctx, const struct urxe_path *path, uint32_t qpn);
	/* Copies a referenced payload from its sender's memory to n extents (at most
	 * URXE_REFERENCE_PIECES) of the same total length. False: a part could not be read, or the
	 * reference has ended meanwhile. */
	bool (*pull)(void *dev_ctx, const struct urxe_reference *reference,
		     const struct urxe_extent *to, uint32_t n);
	/* Whether this host can send nothing to that peer now, because the daemon that forwards its
	 * frames is absent: then a local ACK timeout uses up no retry. NULL: never. */
	bool (*path_cut)(void *dev_ctx, const struct urxe_path *path);
	/* Makes bytes of a region survive a loss of power. False: that failed. NULL: the device has
	 * no persistent memory, and refuses regions with URXE_ACCESS_FLUSH_PERSISTENT. */
	bool (*persist)(void *dev_ctx, const struct urxe_extent *bytes);
	/*
	 * Calls touch(arg), which reads or writes these bytes of a region. False: an access of
	 * touch to unmapped bytes has raised a signal, and the callback has left touch at that
	 * access, which is safe because touch acquires nothing. NULL: memory stays mapped as long
	 * as it is registered.
	 */
	bool (*guard)(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *arg),
		      void *arg);
	/* The engine has written to these bytes of a region, or to a part of them. The engine does
	 * not report bytes that `pull` or the copy transport writes. NULL: not called. */
	void (*written)(void *dev_ctx, const struct urxe_extent *bytes);
	/* Resolves the page list of a fast registration, after all earlier requests of its send
	 * queue have been executed, or sent for the first time. The extents stay valid until the
	 * next call of this function. False: the list is malformed, and the request fails. NULL:
	 * the device refuses URXE_WR_REG_MR. */
	bool (*page_list)(void *dev_ctx, const struct urxe_fast_reg *request,
			  const struct urxe_extent **extents, uint32_t *n_extents);
};

struct urxe_dev_attr {
	void *ctx;
	const struct urxe_ops *ops;
	uint8_t mac[6];
	/* Longest Ethernet payload that the link will ever have, bytes; limits the path MTU, as
	 * urxe_link_mtu_set does. */
	uint32_t mtu;
	uint32_t qpn_first; /* QPNs that the engine may choose: */
	uint32_t qpn_count; /* [qpn_first, qpn_first + qpn_count) */
	uint64_t seed;      /* for the random bits of keys */
	/*
	 * The window of a QP: most unacknowledged request packets, up to 2^22. 0 = 448 packets if
	 * the peer has this device's MAC, else 256 packets, but not more than 512 KiB. With 0, a
	 * frame with a payload reference counts as one packet, but not more than 2,048 packets of
	 * the path MTU may be unacknowledged.
	 *
	 * RC QPs whose peers have other MACs share two windows, except with go_back_n: while more
	 * than two such QPs have packets on the way, each may use an equal share of the two, at
	 * least 4 packets, and never more than its own window.
	 */
	uint32_t max_packets;
	/* Time from the detection of a missing request to the sequence NAK, or of a missing
	 * response to the repetition of its request: the packet may be late rather than lost. ns, 0
	 * = 5,000, 1 = at once. With go_back_n always at once. */
	uint32_t reorder_ns;
	/* Shortest silence of a peer before a probe, ns; 0 = 20,000. A probe sends the oldest
	 * unacknowledged packets again before the local ACK timeout. Every packet sets this
	 * deadline, so an owner that sleeps until the next deadline may want a longer time. */
	uint32_t probe_ns;
	/* Recovers from losses as in the specification, without the additions of docs/recovery.md.
	 */
	bool go_back_n;
	uint8_t congestion; /* enum urxe_congestion */
	/* Copied; NULL = urxe_dcqcn_default, with a min_bps of at most link_bps. */
	const struct urxe_dcqcn *dcqcn;
	/* Rate of the link, bits/s, at most 4 * 10^12: initial and highest rate of DCQCN. 0 = not
	 * known, which counts as 100 Gb/s. */
	uint64_t link_bps;
	uint32_t cnp_interval_ns; /* shortest time between two CNPs of a QP; 0 = 50,000 */
	/*
	 * The copy transport; copy_ops NULL = not used. Other devices read copy_table; NULL = they
	 * read none. The table's memory is valid until the device is destroyed. At first it is all
	 * 0, or the table of an earlier device that was destroyed.
	 */
	const struct urxe_copy_ops *copy_ops;
	void *copy_ctx; /* of copy_ops */
	struct urxe_copy_table *copy_table;
	/* urxe_output leaves the ICRC of packets to the device's own MAC address undefined, because
	 * the processes of a host exchange them in memory. The owner calls urxe_frame_add_icrc
	 * before it passes such a frame to a receiver that checks the ICRC. */
	bool omit_local_icrc;
};

/* The longest path MTU whose packets fit an Ethernet payload of `mtu` bytes; 0 = none. */
uint32_t urxe_max_path_mtu(uint32_t mtu);

/* Creates a device. -EINVAL: `ops` is NULL, or an attribute is out of range; -ENOMEM. */
int urxe_dev_create(const struct urxe_dev_attr *attr, struct urxe_dev **dev);
/* Destroys the device and all its objects, without completions. */
void urxe_dev_destroy(struct urxe_dev *dev);

/*
 * Sets entry index (below URXE_MAX_GIDS) of the GID table, without a VLAN; `v1`: packets from this
 * GID are RoCEv1. A NULL gid clears the entry. -EINVAL: the index is too large.
 */
int urxe_gid_set(struct urxe_dev *dev, uint32_t index, const struct urxe_gid *gid, bool v1);
/* Reads an entry. False: the entry is empty or the index too high, and *gid and *v1 stay. */
bool urxe_gid_get(const struct urxe_dev *dev, uint32_t index, struct urxe_gid *gid, bool *v1);

/*
 * Sets the VLAN ID of an entry, 1 to 4094; 0 = no VLAN. Packets from the GID get an 802.1Q tag with
 * the path's service level as priority. Packets to the GID must have a tag with the same ID; a tag
 * with ID 0 counts as no tag. A connected QP uses the tag that was set when its path was set.
 * -EINVAL: the entry is empty, or a number is too large.
 */
int urxe_gid_set_vlan(struct urxe_dev *dev, uint32_t index, uint16_t vlan);
/* The VLAN ID of an entry; 0: no VLAN, or the entry is empty. */
uint16_t urxe_gid_vlan(const struct urxe_dev *dev, uint32_t index);

/*
 * Sets entry index (below URXE_MAX_PKEYS) of the P_Key table (IBA 10.9.2): 15 bits
 * of partition, and the top bit for full membership. Partition 0 clears the entry; -EBUSY while a
 * QP uses it. -EINVAL: the index is too large. A new device has only URXE_DEFAULT_PKEY at index 0.
 */
int urxe_pkey_set(struct urxe_dev *dev, uint32_t index, uint16_t pkey);
/* Reads entry index (below URXE_MAX_PKEYS) of the P_Key table; 0: the entry is empty. */
uint16_t urxe_pkey(const struct urxe_dev *dev, uint32_t index);

/*
 * Sets the longest Ethernet payload of the link, bytes: limits datagrams, and path MTUs that are
 * set from now on. Connections keep their path MTU, and the link drops packets that are too long
 * now; it drops all if the MTU is too small for any path MTU. -EINVAL: more than the device's mtu.
 */
int urxe_link_mtu_set(struct urxe_dev *dev, uint32_t mtu);

/*
 * Turns UDP GSO on or off. `on`: the owner can receive UDP GSO packets, whose segments it passes to
 * urxe_input as single frames, and can send frames with urxe_frame.continues as UDP GSO packets.
 * The device then marks its ACKs and READ requests (by the IPv4 identification or the IPv6 flow
 * label, wire/gso_run.h), so that its peers may send it UDP GSO packets. Initially off.
 */
void urxe_dev_set_gso(struct urxe_dev *dev, bool on);

/*
 * A payload in its sender's memory, from which the receiver copies it (urxe_ops.pull).
 *
 * The memory of an RC request belongs to the engine until the request is acknowledged, so the
 * payload does not change before. If the request ends in another way, or the memory is
 * deregistered or unmapped, the sender's engine increments urxe_copy_table.references before the
 * program gets the memory back. A reference never leaves the host: numbers, QPNs too, are in host
 * byte order.
 */
struct urxe_reference {
	uint64_t address;    /* in the sender's process, if n_pieces is 0 */
	uint32_t length;     /* bytes; 0 = no reference */
	uint32_t packets;    /* that the payload would need; the frame takes as many PSNs */
	uint32_t generation; /* urxe_copy_table.references when the frame was made */
	/* Pieces of the payload in the list that stands in place of the frame's ICRC and behind it;
	 * 0 = the payload is one piece. */
	uint32_t n_pieces;
	uint32_t src_qpn; /* of the sender's queue pair; set by urxe_output */
	/* For urxe_ops.pull; set by the owner for urxe_input: */
	void *sender;
	const uint8_t *pieces; /* n_pieces struct urxe_reference_piece, not aligned */
};

struct urxe_reference_piece {
	uint64_t address; /* in the sender's process */
	uint64_t length;  /* bytes */
};

/*
 * One Ethernet frame, from the destination MAC to the ICRC; no FCS. A frame with a reference has
 * the headers of the first of the reference's packets, and no payload. Its length counts an ICRC,
 * and not the reference's list of pieces.
 */
struct urxe_frame {
	uint8_t *data;
	uint32_t len;
	uint32_t room;     /* size of data, bytes; used by urxe_output */
	uint32_t dest_qpn; /* destination QPN of the packet; set by urxe_output */
	/* Set by urxe_output: this frame and the previous frame of the array may be segments of one
	 * UDP GSO packet (udp(7), UDP_SEGMENT). Their headers are equal except for the IPv4
	 * identification, which is greater by 1, lengths and checksums. In such a run of frames
	 * only the last may be shorter than the first, and their total is less than 2^16 bytes.
	 * Each may also be sent as a packet of its own. */
	bool continues;
	bool acknowledges; /* only an ACK, no NAK and no response with data; set by urxe_output */
	bool without_icrc; /* for urxe_input: the ICRC's bytes are undefined and not read */
	bool from_wire;    /* for urxe_input: it came from another host, on a path that checks no
			      source addresses */
	struct urxe_reference reference;
};

/* Bytes at frame->data: the frame, or its headers and the list of its reference's pieces. */
static inline uint32_t urxe_frame_bytes(const struct urxe_frame *frame)
{
	if (!frame->reference.length || !frame->reference.n_pieces)
		return frame->len;
	return frame->len - URXE_ICRC_LEN +
	       frame->reference.n_pieces * (uint32_t)sizeof(struct urxe_reference_piece);
}

/* Sets the ICRC of a frame that urxe_output wrote without it (urxe_dev_attr.omit_local_icrc). */
void urxe_frame_add_icrc(uint8_t *data, uint32_t len);

/* Processes n received frames; the engine keeps no pointer to them. */
void urxe_input(struct urxe_dev *dev, uint64_t now, const struct urxe_frame *frames, uint32_t n);

/*
 * Runs timers that are due, then writes up to max frames. The caller sets data and room of each
 * frame (room at least urxe_dev_attr.mtu + 18: an Ethernet header and a VLAN tag); the engine
 * sets len. Returns the number of frames; fewer than max: the engine has nothing more to send now.
 */
uint32_t urxe_output(struct urxe_dev *dev, uint64_t now, struct urxe_frame *frames, uint32_t max);

/* The time at which urxe_output has to be called next; 0 = at once. URXE_NEVER = not before another
 * call gives the engine something to do: the owner asks again after each call. */
uint64_t urxe_next_deadline(const struct urxe_dev *dev);
const struct urxe_counters *urxe_dev_counters(const struct urxe_dev *dev);

/*
 * Withdraws all rights of peers to copy from and to this device's memory, also by references. Their
 * requests then go in packets, until rights are published again: those of a queue pair by its next
 * modification, those of a region by its next registration, all by urxe_copy_rights_publish. As
 * after urxe_mr_dereg, copies may still be in progress.
 */
void urxe_copy_rights_withdraw(struct urxe_dev *dev);
/* Publishes the rights of all regions, windows and queue pairs again. */
void urxe_copy_rights_publish(struct urxe_dev *dev);

/* --- Memory regions. Protection domains are numbers that the owner chooses. */

/* A piece of a region in the process's own address space. */
struct urxe_extent {
	void *addr; /* NULL, for urxe_mr_reg and urxe_mr_rereg: a hole; accesses to it fail */
	uint64_t length;
};

struct urxe_mr_attr {
	uint32_t pd;
	uint32_t access; /* enum urxe_access; local read is always allowed */
	uint64_t iova;   /* address of the first byte in the key's address space */
	uint64_t length; /* sum of the extents' lengths; the last byte's address must not wrap */
	const struct urxe_extent *extents; /* copied */
	uint32_t n_extents;
	uint32_t key; /* lkey and rkey; 0 = the engine chooses */
};

/*
 * Registers a region. -EINVAL: the attributes contradict each other; -EEXIST: the key is taken;
 * -EOPNOTSUPP: URXE_ACCESS_FLUSH_PERSISTENT without urxe_ops.persist; -ENOMEM; or an error of the
 * HCA.
 */
int urxe_mr_reg(struct urxe_dev *dev, const struct urxe_mr_attr *attr, struct urxe_mr **mr);
/*
 * Replaces the region by another one with the same key (IBA 11.2.8.6), as if it were deregistered
 * and registered in one step; ignores attr->key. A region that is also registered with an HCA
 * (rxe/offload.h) gets a new key. *mr becomes the new region. Errors as of urxe_mr_reg, or -EBUSY
 * while a window is bound to the region; then nothing has changed.
 */
int urxe_mr_rereg(struct urxe_mr **mr, const struct urxe_mr_attr *attr);
/*
 * Deregisters and frees the region. -EBUSY while a window is bound to it (IBA 10.6.7.2.6). After
 * success the engine does not access the memory any more. Copies of peers by the copy transport may
 * still be in progress, here and wherever else rights end, until urxe_copy_ops.settled returns
 * true.
 */
int urxe_mr_dereg(struct urxe_mr *mr);
/*
 * The owner is about to unmap these bytes, or to map other memory in their place: withdraws them
 * from the region until it is registered anew, or urxe_mr_unmapped() gives them back. Accesses to
 * them fail as where `guard` returns false. After success the engine does not access them. -ENOMEM:
 * nothing has changed; urxe_mr_unmap_all, which needs no memory, withdraws the whole region for
 * good.
 */
int urxe_mr_unmap(struct urxe_mr *mr, const struct urxe_extent *bytes);
void urxe_mr_unmap_all(struct urxe_mr *mr);
/*
 * The owner calls this after its munmap(2) or similar call has returned, with the bytes of
 * urxe_mr_unmap. `done` is false if that call failed: the bytes belong to the region again, unless
 * a further such call is unmapping them.
 */
void urxe_mr_unmapped(struct urxe_mr *mr, const struct urxe_extent *bytes, bool done);
/* Whether the region has one of the bytes. */
bool urxe_mr_has_bytes(const struct urxe_mr *mr, const struct urxe_extent *bytes);
/* Iterates over the region's ranges without those that the owner has unmapped: sets *bytes to the
 * next range, and moves *i, which is 0 at first. False: no range is left. */
bool urxe_mr_next_bytes(const struct urxe_mr *mr, uint32_t *i, struct urxe_extent *bytes);
uint32_t urxe_mr_key(const struct urxe_mr *mr);
/* The attributes of the registration and the current key, without extents. */
void urxe_mr_query(const struct urxe_mr *mr, struct urxe_mr_attr *attr);

/* --- Fast registration (IBA 10.6.3.4): a send request makes a region of a list of pages. */

/*
 * Allocates an object for fast registrations: keys, and room for the extents of one region. The
 * region is registered by URXE_WR_REG_MR requests of QPs of the same protection domain, one after
 * the other. LOCAL_INV, or SEND_INV of the QP's peer, deregisters it; LOCAL_INV first waits until
 * all earlier requests of its QP are complete, because they may use the key. The object owns all
 * keys with the upper 24 bits of its first key, which the engine chooses. -ENOMEM.
 */
int urxe_fast_mr_alloc(struct urxe_dev *dev, uint32_t pd, uint32_t max_extents,
		       struct urxe_fast_mr **fast);
/* Frees the object and its keys, and deregisters its region, if there is one. -EBUSY while a window
 * is bound to the region. */
int urxe_fast_mr_free(struct urxe_fast_mr *fast);
/* The key of the newest registration, or the first key. */
uint32_t urxe_fast_mr_key(const struct urxe_fast_mr *fast);
/* The registered region, for urxe_mr_unmap; NULL: none. Only requests register and deregister it.
 */
struct urxe_mr *urxe_fast_mr_region(const struct urxe_fast_mr *fast);

/* --- Memory windows (IBA 10.6.7). Send requests bind and invalidate them. */

struct urxe_mw_attr {
	uint32_t pd;
	uint8_t type; /* enum urxe_mw_type */
	uint32_t key; /* the initial key; 0 = the engine chooses */
};

/*
 * Creates a window that grants nothing yet. The window owns all keys with the upper 24 bits of its
 * initial key; -EEXIST: one of them is taken. -EINVAL: unknown type; -ENOMEM; -EOPNOTSUPP: the
 * device has an HCA (rxe/offload.h).
 */
int urxe_mw_alloc(struct urxe_dev *dev, const struct urxe_mw_attr *attr, struct urxe_mw **mw);
/* Destroys the window, bound or not: its keys grant nothing any more, and are free. */
void urxe_mw_dealloc(struct urxe_mw *mw);
/* The current key; each bind changes its low 8 bits. */
uint32_t urxe_mw_key(const struct urxe_mw *mw);

/* --- Completion queues. */

/* Creates a CQ, whose completions the owner keeps (urxe_ops.complete). -ENOMEM. */
int urxe_cq_create(struct urxe_dev *dev, void *ctx, struct urxe_cq **cq);
/* Destroys the CQ. -EBUSY while a QP uses it. */
int urxe_cq_destroy(struct urxe_cq *cq);
/* Requests one comp_event: at the next completion, or the next that is solicited or an error. */
void urxe_cq_arm(struct urxe_cq *cq, bool solicited_only);

/* --- Receive queues. */

struct urxe_rq_attr {
	void *ctx;
	uint32_t pd;
	uint32_t max_wr;
	uint32_t max_sge;
	bool alone; /* the queue is the engine's alone: the HCA does not get it (rxe/offload.h) */
};

/* Creates a shared receive queue. -EINVAL: attr->max_wr or attr->max_sge is too large; -ENOMEM. */
int urxe_srq_create(struct urxe_dev *dev, const struct urxe_rq_attr *attr, struct urxe_rq **srq);
/* Destroys the queue; its requests do not complete. -EBUSY while a QP uses it. */
int urxe_srq_destroy(struct urxe_rq *srq);
/* Requests one event URXE_ASYNC_SRQ_LIMIT_REACHED: when a QP takes a request, and fewer than
 * `limit` are left. 0: no event. -EINVAL: more than max_wr; or an error of the HCA. */
int urxe_srq_set_limit(struct urxe_rq *srq, uint32_t limit);
uint32_t urxe_srq_limit(const struct urxe_rq *srq);
/*
 * Makes room for max_wr requests; posted requests stay. -EINVAL: max_wr is 0, over URXE_MAX_WR, or
 * less than the number of posted requests or the limit; -ENOMEM; or the HCA's error. Then nothing
 * has changed.
 */
int urxe_srq_resize(struct urxe_rq *srq, uint32_t max_wr);

/*
 * Queues a receive request. -ENOMEM: the queue is full; -EINVAL: too many segments, or the QP is in
 * RESET. The callback `refill` may call this function.
 */
int urxe_post_recv(struct urxe_rq *rq, const struct urxe_recv_wr *wr);
/*
 * Number of posted requests that were completed (SRQ: taken by a QP), modulo 2^32. The transition
 * of a QP to RESET adds all requests that were not completed.
 */
uint32_t urxe_rq_retired(const struct urxe_rq *rq);

/* --- Queue pairs. */

struct urxe_qp_init {
	void *ctx;
	uint8_t type; /* enum urxe_qp_type */
	bool sq_sig_all;
	bool block_self_mcast; /* UD: the QP does not receive its own datagrams to its groups */
	uint32_t pd;
	uint32_t qpn; /* 0 = the engine chooses */
	struct urxe_cq *send_cq;
	struct urxe_cq *recv_cq;
	struct urxe_rq *srq; /* NULL: a receive queue of its own, with the same ctx */
	/* With a SRQ, urxe_qp_create ignores max_recv_wr and max_recv_sge; urxe_qp_query gives 0.
	 */
	struct urxe_qp_cap cap;
};

/* Creates a QP in RESET. -EINVAL: a member of *init is out of range; -EEXIST: the QPN is taken;
 * -ENOSPC: no QPN is free; -ENOMEM; errors of an HCA: urxe_offload_ops.qp_create. */
int urxe_qp_create(struct urxe_dev *dev, const struct urxe_qp_init *init, struct urxe_qp **qp);
/* Destroys the QP: its outstanding requests get no completions (IBA 10.2.4.4). */
void urxe_qp_destroy(struct urxe_qp *qp);
/*
 * Makes a delayed acknowledgement due, before the QP is destroyed, reset or failed and can send
 * nothing more. True: an acknowledgement is due, and the next urxe_output begins with this QP.
 * A CNP and the responses to earlier requests go before the acknowledgement. A NAK that is due
 * replaces the acknowledgement, or goes before it. If neither CNP, response nor NAK is due, one
 * request may go before the acknowledgement. While pacing holds a READ response, the
 * acknowledgement waits behind that response, and urxe_output goes on with other QPs.
 */
bool urxe_qp_flush_acks(struct urxe_qp *qp);
uint32_t urxe_qp_qpn(const struct urxe_qp *qp);
/* Whether the state is RESET: then the QP takes no requests. */
bool urxe_qp_is_reset(const struct urxe_qp *qp);
/* The QP's own receive queue; NULL with a SRQ. */
struct urxe_rq *urxe_qp_rq(struct urxe_qp *qp);

/*
 * Applies the attributes in mask (enum urxe_qp_attr_mask). -EINVAL: the transition is not allowed,
 * or an attribute is missing, unexpected or out of range; -EOPNOTSUPP: path migration, that is an
 * alternate path, or another migration state than MIGRATED; -EBUSY: max_dest_rd_atomic while a
 * response is due; -ENOMEM; or an error of the HCA. Then nothing has changed (IBA 11.2.5.2).
 */
int urxe_qp_modify(struct urxe_qp *qp, uint64_t now, const struct urxe_qp_attr *attr,
		   uint32_t mask);
void urxe_qp_query(const struct urxe_qp *qp, struct urxe_qp_attr *attr, struct urxe_qp_init *init);
/* Whether the next calls of urxe_output will send responses, an ACK or a NAK of the QP, or an ACK
 * is delayed. Errors that move a QP to the error state leave its answers due. */
bool urxe_qp_has_answers(const struct urxe_qp *qp);

/* Outstanding requests and remaining retries of a QP. */
struct urxe_qp_load {
	uint32_t sends;    /* send requests posted and not completed */
	uint32_t packets;  /* request packets sent and not acknowledged; 0 if an HCA sends them */
	uint32_t receives; /* receive requests posted and not taken by a message; of its SRQ, if it
			      has one */
	uint8_t retries;   /* left before the oldest request ends in an error; 0 to 7 */
	uint8_t rnr_retries;
};
void urxe_qp_load(const struct urxe_qp *qp, struct urxe_qp_load *load);
/* Whether the next WRITE or READ tries the copy transport first, if no request is outstanding. */
bool urxe_qp_tries_copy(const struct urxe_qp *qp);
/*
 * Executes posted requests by the copy transport, as far as possible; hands those of an offloaded
 * QP to the HCA. The next urxe_output would do so, too, but takes longer.
 */
void urxe_qp_execute(struct urxe_qp *qp, uint64_t now);
/*
 * The QP's share of the device's counters, since its creation. Packets that were dropped before
 * their QP was found, and received multicast packets, count for the device only.
 */
const struct urxe_counters *urxe_qp_counters(const struct urxe_qp *qp);

/*
 * Queues a send request; urxe_output sends it. Copies the segment list and inline data. -ENOMEM:
 * the queue is full; -EINVAL: the state (RESET, INIT, RTR), the opcode or the segments do not fit
 * the QP; -EMSGSIZE: longer than URXE_MAX_MSG, or for UD than the path MTU.
 */
int urxe_post_send(struct urxe_qp *qp, const struct urxe_send_wr *wr);
/*
 * Queues a request in place of a malformed one: nothing is sent, and the request completes in the
 * error `status` after all requests before it, like a request that fails locally. -ENOMEM: the
 * queue is full; -EINVAL: the state is RESET, INIT or RTR.
 */
int urxe_post_malformed(struct urxe_qp *qp, uint64_t wr_id, enum urxe_wc_status status);
/* Number of requests that have left the send queue, modulo 2^32. */
uint32_t urxe_sq_retired(struct urxe_qp *qp);

/*
 * Attaches a UD QP to a multicast group (IBA 10.5): an address of ff00::/8, or of 224.0.0.0/4 as
 * ::ffff:a.b.c.d, and QPN URXE_QPN_MULTICAST. Datagrams that a QP of this device sends to the group
 * go to the network and to the members on this device, also to the sender. Destruction of a QP
 * detaches it; RESET does not.
 *
 * Attaching twice has no further effect. -EINVAL: not a UD QP, not a multicast address, or not
 * attached; -ENOMEM: also if URXE_MAX_MCAST_GROUPS or URXE_MAX_MCAST_QPS is reached; or an error of
 * the HCA.
 */
int urxe_mcast_attach(struct urxe_qp *qp, const struct urxe_gid *gid);
int urxe_mcast_detach(struct urxe_qp *qp, const struct urxe_gid *gid);
/* Whether the QP is attached to any multicast group. */
bool urxe_mcast_attached(const struct urxe_qp *qp);
/* Whether any QP of the device is attached to a multicast group. */
bool urxe_mcast_any_attached(const struct urxe_dev *dev);

#endif
