/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The copy transport: the requester executes WRITEs and READs of a reliable connection by a copy
 * between its own memory and the responder's, if both devices are on one host.
 *
 * Each device publishes a table of its queue pairs and of the rights of its keys. The requester
 * makes the responder's checks (IBA 10.6.3, 9.7.4.1.5) with that table, then copies. A copied
 * request takes no PSN and changes no transport state. A request that cannot be copied goes in
 * packets, and the responder's engine answers it: so no request fails because of the copy
 * transport. Atomics, requests with immediate data and unreliable connections always go in packets.
 *
 * Only the device that a table belongs to writes to it. A reader copies an entry, and believes the
 * copy if the entry's version was even, and the same before and after.
 *
 * The pieces of a region have no version. The epoch alone tells a reader whether they are valid:
 * the device writes to pieces only after it has withdrawn the region that had them before.
 *
 * Withdrawal of rights: the device removes the entry, increments the epoch, then calls
 * urxe_copy_ops.withdrawn. The requester's `copy` first states in shared memory that a copy runs,
 * and then copies nothing if the epoch has changed since the rights were read. So `withdrawn` finds
 * each copy that may use withdrawn rights, and `settled` tells whether they all have ended.
 */
#ifndef URXE_RXE_COPY_TRANSPORT_H
#define URXE_RXE_COPY_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

/* Grants of a table. A key has one possible entry, chosen by its upper 24 bits; if another key has
 * that entry, the key is not published. */
#define URXE_COPY_GRANTS 8192
/*
 * The entries of queue pairs are in chunks. A block of URXE_COPY_CHUNK consecutive QPNs uses one
 * chunk (urxe_copy_table.chunks); the low bits of a QPN are the index in the chunk. The device
 * gives a chunk without published queue pairs to another block. It does not publish a queue pair if
 * each chunk has queue pairs of other blocks.
 */
#define URXE_COPY_CHUNK  4096u /* QPNs of a block; its first QPN is a multiple of this */
#define URXE_COPY_CHUNKS 16u
/*
 * A region of more than one piece, as those of virtual machines are, has a run of entries in the
 * table's list of pieces: whole units of URXE_COPY_UNIT entries. A region is not published if it
 * has more than URXE_COPY_GRANT_PIECES pieces, or if the list has no run left for it.
 */
#define URXE_COPY_PIECES       65536u
#define URXE_COPY_UNIT         16u
#define URXE_COPY_GRANT_PIECES 16384u

/* Bytes of the longest message: the thread that runs the engine does nothing else during a copy. */
#define URXE_COPY_MAX (64u << 20)

struct urxe_extent;

/* Bytes of a region that are contiguous in memory: up to the next piece, or the region's end. */
struct urxe_copy_piece {
	uint64_t offset; /* of the first byte, in the region */
	uint64_t addr;   /* of the first byte in the process's address space; 0: not mapped */
};

/* The rights of a key: a region, or a bound window. */
struct urxe_copy_grant {
	_Alignas(64) uint32_t version; /* odd while the device changes the entry */
	uint32_t key;                  /* 0: none */
	uint32_t pd;
	uint32_t access; /* enum urxe_access */
	uint32_t qpn;    /* the QP that may use a type 2 window; 0: any QP of `pd` */
	uint64_t start;  /* address of the first byte in the key's address space */
	uint64_t length;
	uint64_t addr; /* of the first byte in the process's address space; if n_pieces is 1 */
	uint32_t n_pieces;
	uint32_t pieces; /* index in urxe_copy_table.pieces of the first one; if n_pieces is more
			    than 1 */
};

/* A queue pair of the table's device, which executes the requests of its peer dest_qpn. */
struct urxe_copy_qp {
	uint32_t version;
	uint32_t qpn; /* 0: none */
	uint32_t dest_qpn;
	uint32_t pd;
	uint32_t access;    /* enum urxe_access: rights of the peer */
	uint32_t rd_atomic; /* READs that the peer may have outstanding */
	uint32_t reserved[2];
};

union urxe_copy_state {
	uint64_t word;
	struct {
		uint32_t owner; /* for the process of the device; the engine does not use it */
		uint32_t epoch; /* counts withdrawals */
	};
};

struct urxe_copy_table {
	_Alignas(64) union urxe_copy_state state;
	uint32_t references; /* generation of payload references (struct urxe_reference) */
	uint32_t qp_version; /* newest version of all entries of qps, which share this counter */
	_Alignas(64) struct urxe_copy_grant grants[URXE_COPY_GRANTS];
	struct urxe_copy_qp qps[URXE_COPY_CHUNKS][URXE_COPY_CHUNK];
	uint8_t chunks[(1u << 24) / URXE_COPY_CHUNK]; /* 1 + the index in qps; 0: none */
	struct urxe_copy_piece pieces[URXE_COPY_PIECES];
};

/* Most requests of one copy, and most extents of all these requests together at either end. */
#define URXE_COPY_PARTS   16
#define URXE_COPY_EXTENTS 512

/* Contiguous bytes in the address space of the responder's process. */
struct urxe_remote_extent {
	uint64_t addr;
	uint64_t length;
};

/* A request of a copy. Both lists have the same number of bytes, and no empty extent. */
struct urxe_copy_part {
	const struct urxe_remote_extent *remote;
	uint32_t n_remote;
	uint32_t n_local;
	const struct urxe_extent *local;
};

/* One copy: requests in their order, all of them WRITEs or all of them READs. */
struct urxe_copy_job {
	uint64_t state; /* the table's urxe_copy_state.word before the requester read the rights */
	const struct urxe_copy_part *parts;
	uint32_t n_parts;
	bool write; /* WRITEs. `copy` stores the last 8 bytes of each part last: the peer's program
		       may poll them */
};

/* Provided by the owner of a device; each gets urxe_dev_attr.copy_ctx. None may call the engine. */
struct urxe_copy_ops {
	/*
	 * The table of the device that has the MAC address and the QPN; NULL if it is not reachable
	 * now. `copy` and `polls_or_wake` are about the device whose table was returned last.
	 */
	const struct urxe_copy_table *(*table)(void *ctx, const uint8_t mac[6], uint32_t qpn);
	/*
	 * Returns the number of parts, from the first on, that were copied. The next part may be
	 * copied in part. During urxe_output `copy`, `table` and `withdrawn` may send or move the
	 * finished frames of the owner's array, and give the other frames other buffers
	 * (urxe_frame.data and room).
	 */
	uint32_t (*copy)(void *ctx, const struct urxe_copy_job *copy);
	/*
	 * Whether the peer's engine thread polls for packets at the device's time `now`. True: the
	 * requester sends short requests in packets, which a polling thread takes sooner than the
	 * kernel copies. False: the requester copies; if such calls come in a stream, the function
	 * wakes the thread, so that it polls soon.
	 */
	bool (*polls_or_wake)(void *ctx, uint64_t now);
	/* Rights were withdrawn from this device's table: finds the copies that may still use them.
	 */
	void (*withdrawn)(void *ctx);
	/* Whether all copies that `withdrawn` has found have ended. Does not block. */
	bool (*settled)(void *ctx);
};

#endif
