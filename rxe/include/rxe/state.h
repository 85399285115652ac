/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of a device as a byte stream: live migration, snapshots and suspend.
 *
 * urxe_state_save writes everything that a device and its objects have, also in the middle of
 * messages. urxe_state_restore makes the same device on another engine, with the same QPNs, keys
 * and PSNs, so peers notice only a pause. docs/state.md describes the format and what an owner has
 * to do. Both functions call no function of urxe_ops. While one runs, no thread may call another
 * function of the engine for the device.
 */
#ifndef URXE_RXE_STATE_H
#define URXE_RXE_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* The version that urxe_state_save writes. urxe_state_restore reads it and all earlier ones. */
#define URXE_STATE_VERSION 2

/* Kinds of objects in callbacks; not the kinds of records in a stream. */
enum urxe_state_kind {
	URXE_STATE_CQ = 1,
	URXE_STATE_SRQ,
	URXE_STATE_QP,
	URXE_STATE_MR,
	URXE_STATE_MW,
	URXE_STATE_FAST_MR,
};

/* An object of a stream, and the restored one. */
struct urxe_state_object {
	uint8_t kind; /* enum urxe_state_kind */
	/* QP: its QPN. MR, MW, fast MR: the key. CQ, SRQ: its index in the stream, from 0 on. */
	uint32_t id;
	uint64_t tag; /* CQ, SRQ, QP: as urxe_state_save.tag returned it; else 0 */
	union {
		struct urxe_cq *cq;
		struct urxe_rq *srq;
		struct urxe_qp *qp;
		struct urxe_mr *mr;
		struct urxe_mw *mw;
		struct urxe_fast_mr *fast_mr;
	};
};

/* What the owner contributes to a stream. Each callback gets `arg`; none may call the engine. */
struct urxe_state_save {
	void *arg;
	/* A number from which the owner recognizes the CQ, SRQ or QP with this context when it is
	 * restored. NULL: 0. */
	uint64_t (*tag)(void *arg, enum urxe_state_kind kind, void *ctx);
	/* Copies completion i, from 0 on, that the program has not taken from the CQ. False: there
	 * are no more. NULL: the stream has no completions. */
	bool (*completion)(void *arg, void *cq_ctx, uint32_t i, struct urxe_wc *wc);
};

/*
 * Saves the device, as it is at the time `now` (ns of the device's clock). `how` is not NULL. The
 * owner frees the stream with urxe_state_free. The device stays usable: after a snapshot, after an
 * error, or if a migration is abandoned, it continues. The save makes the device forget what the
 * stream lacks (docs/state.md); after -EBADMSG or -ENOMEM the device may have forgotten a part of
 * that. Its rights for the copy transport are withdrawn (urxe_copy_rights_withdraw), also before
 * most errors; urxe_copy_rights_publish publishes them again.
 *
 * -EBUSY: a peer still copies by the copy transport (try again until urxe_copy_ops.settled), or a
 * call of urxe_mr_unmap waits for its urxe_mr_unmapped. -EOPNOTSUPP: an HCA executes queue pairs,
 * or has a shared receive queue (rxe/offload.h). -EBADMSG: the mtu is more than 65535, or the
 * device contradicts itself, which is a fault of the engine. -ENOMEM.
 */
int urxe_state_save(struct urxe_dev *dev, uint64_t now, const struct urxe_state_save *how,
		    uint8_t **stream, size_t *length);
void urxe_state_free(uint8_t *stream);

/* A region whose memory the owner provides. */
struct urxe_state_region {
	uint32_t key;
	uint32_t access; /* enum urxe_access */
	uint64_t length;
	/* Before the callback: the extents where the device was saved, with addresses of that
	 * process; addr NULL: a hole, or unmapped. They are numbers from the stream, not valid
	 * pointers. The callback sets the extents in this process, of the same total length. */
	const struct urxe_extent *extents;
	uint32_t n_extents;
};

/* What the owner provides for a restored device. Each callback gets `arg`; none may call the
 * engine. */
struct urxe_state_restore {
	void *arg;
	/* Returns the context of a CQ, SRQ or QP that is about to be created. The pointers in
	 * *object are NULL. Without this callback all contexts are NULL. */
	void *(*context)(void *arg, const struct urxe_state_object *object);
	/* Sets the extents of a region; NULL: a stream with regions gives -EINVAL. They have to
	 * stay valid until the callback is called again, or urxe_state_restore returns. A negative
	 * errno value ends the restoration. urxe_state_same_memory keeps the addresses. */
	int (*memory)(void *arg, struct urxe_state_region *region);
	/* A completion that the program had not taken from the CQ; called in their order. A
	 * negative errno value ends the restoration. NULL: completions are dropped. */
	int (*completion)(void *arg, void *cq_ctx, const struct urxe_wc *wc);
	/* An object was restored; called for each one when nothing can fail any more. NULL: not
	 * called. */
	void (*restored)(void *arg, const struct urxe_state_object *object);
	/* Upper limit of the bytes that the queues and lists of a stream take; 0 = no limit. A
	 * stream of a few bytes can ask for queues of megabytes. */
	uint64_t max_bytes;
};

/* For `memory`: keeps the addresses and returns 0, because the process has mapped the same memory
 * there. Only for a stream from a trusted source. */
int urxe_state_same_memory(void *arg, struct urxe_state_region *region);

/* The attributes of a saved device. attr.dcqcn points to the other member, or is NULL. */
struct urxe_state_attr {
	struct urxe_dev_attr attr;
	struct urxe_dcqcn dcqcn;
};

/*
 * Reads the attributes of the device: all members of urxe_dev_attr but `ctx`, `ops`, `seed` and
 * those of the copy transport, which are 0. Errors as of urxe_state_restore.
 */
int urxe_state_read_attr(const uint8_t *stream, size_t length, struct urxe_state_attr *attr);

/*
 * Makes the device of a stream, with these attributes: those of urxe_state_read_attr, in which the
 * owner has set `ctx`, `ops` and the copy transport, and changed what differs on this host, such as
 * link_bps or the QPNs. `seed` has no effect. `how` is not NULL. `now`: ns of the new device's
 * clock. Timers go on with the time that was left when the device was saved.
 *
 * -EBADMSG: the stream is truncated or damaged, or its values contradict each other.
 * -EPROTONOSUPPORT: a later version of urxe has written it. -EINVAL: the attributes do not fit. The
 * MAC address, max_packets or congestion differs; the mtu is too short for the path MTU of a
 * connection (one in the error state counts only with urxe_qp_has_answers) or for a datagram that
 * was not sent yet; or an operation that the stream needs is missing. -EFBIG: it needs more than
 * max_bytes. -ENOMEM; errors of callbacks. After an error the engine has freed the device and its
 * objects, and has called `restored` for none of them. It may have called `context`, `memory` and
 * `completion`.
 */
int urxe_state_restore(const struct urxe_dev_attr *attr, uint64_t now,
		       const struct urxe_state_restore *how, const uint8_t *stream, size_t length,
		       struct urxe_dev **dev);

#endif
