/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The direct transport: the requester executes WRITEs and READs of a reliable connection by a copy
 * between its own memory and the responder's, if both devices are on one host.
 *
 * Each device publishes a table of its queue pairs and of the rights of its keys. The requester
 * makes the responder's checks (IBA 10.6.3, 9.7.4.1.5) by that table, then copies. A request that
 * it cannot execute goes in packets, and the responder's engine answers it: so the direct transport
 * only ever succeeds. Requests that are executed so take no PSN and change no transport state.
 * Atomics, requests with immediate data and unreliable connections always go in packets.
 *
 * Only the device that a table belongs to writes to it. A reader copies an entry, and believes the
 * copy if the entry's version was even, and the same before and after.
 *
 * Withdrawal of rights: the device removes the entry, increments the epoch, then calls
 * urxe_direct_ops.withdrawn. The requester's `copy` marks itself, and does nothing if the epoch is
 * another than before the rights were read. So `withdrawn` finds each copy by withdrawn rights, and
 * such a copy has ended when `settled` says so.
 */
#ifndef URXE_RXE_DIRECT_H
#define URXE_RXE_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

/* A grant has its place by its key. A key whose place is taken is not published. */
#define URXE_DIRECT_GRANTS 8192
/*
 * A queue pair has its place by its number, in the chunk that the table names for that block of
 * numbers. A device has few blocks, and does not publish queue pairs of further ones. A chunk
 * belongs to one block for good, so that versions only count up.
 */
#define URXE_DIRECT_CHUNK  4096u /* QPNs, from a multiple of it on */
#define URXE_DIRECT_CHUNKS 16u

/* Bytes of the longest message: the thread that runs the engine does nothing else during a copy. */
#define URXE_DIRECT_MAX (64u << 20)

struct urxe_extent;

/* The rights of a key: a region of one extent, or a bound window. */
struct urxe_direct_grant {
	_Alignas(64) uint32_t version; /* odd: it is being changed */
	uint32_t key;                  /* 0: none */
	uint32_t pd;
	uint32_t access; /* enum urxe_access */
	uint32_t qpn;    /* a type 2 window's; 0: any of the protection domain */
	uint64_t start;  /* address of the first byte in the key's address space */
	uint64_t length;
	uint64_t addr; /* of the first byte in the process's address space */
};

/* A queue pair that executes requests. */
struct urxe_direct_qp {
	uint32_t version;
	uint32_t qpn; /* 0: none */
	uint32_t dest_qpn;
	uint32_t pd;
	uint32_t access;    /* enum urxe_access: rights of the peer */
	uint32_t rd_atomic; /* READs that the peer may have outstanding */
	uint32_t reserved[2];
};

union urxe_direct_state {
	uint64_t word;
	struct {
		uint32_t owner; /* set by the process of the device, for its own purposes */
		uint32_t epoch; /* counts withdrawals */
	};
};

struct urxe_direct_table {
	_Alignas(64) union urxe_direct_state state;
	uint32_t references; /* generation of payload references (struct urxe_reference) */
	_Alignas(64) struct urxe_direct_grant grants[URXE_DIRECT_GRANTS];
	struct urxe_direct_qp qps[URXE_DIRECT_CHUNKS][URXE_DIRECT_CHUNK];
	uint8_t chunks[(1u << 24) / URXE_DIRECT_CHUNK]; /* 1 + the index in qps; 0: none */
};

/* Requests of one copy, and extents of all of them. */
#define URXE_DIRECT_PARTS   16
#define URXE_DIRECT_EXTENTS 64

/* A request of a copy. */
struct urxe_direct_part {
	uint64_t remote; /* address in the responder's process */
	const struct urxe_extent *local;
	uint32_t n_local; /* none of them empty */
};

/* One copy: requests in their order, all of them WRITEs or all of them READs. */
struct urxe_direct_copy {
	uint64_t state; /* the table's state word before the rights were read */
	const struct urxe_direct_part *parts;
	uint32_t n_parts;
	bool write; /* to the responder: the last 8 bytes of each part are stored last */
};

/* Provided by the owner of a device; each gets the device's ctx. None calls back. */
struct urxe_direct_ops {
	/*
	 * The table of the device that has the MAC address and the QPN; NULL if it is not reachable
	 * now. `copy` and `awake` are about the device whose table was returned last.
	 */
	const struct urxe_direct_table *(*table)(void *ctx, const uint8_t mac[6], uint32_t qpn);
	/*
	 * Returns the number of parts, from the first on, that were copied. The next part may be
	 * copied in part. Within urxe_output this may move the frames that urxe_output was given:
	 * what was written, and the buffers for the rest.
	 */
	uint32_t (*copy)(void *ctx, const struct urxe_direct_copy *copy);
	/*
	 * At the device's time `now`: whether the peer's engine thread polls for packets at
	 * present. Frequent calls ask it to do so.
	 */
	bool (*awake)(void *ctx, uint64_t now);
	/* Rights were withdrawn from this device's table: finds the copies that may still use them.
	 */
	void (*withdrawn)(void *ctx);
	/* Whether all copies that `withdrawn` has found have ended. Does not block. */
	bool (*settled)(void *ctx);
};

#endif
