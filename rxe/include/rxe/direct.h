/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The direct transport: WRITEs and READs of a reliable connection between two devices of
 * one machine, which the requester executes itself on the responder's memory.
 *
 * Each device publishes in a table who may do what with its memory. A requester that is
 * inside (enter) checks by it what the responder would check, and copies. What it cannot
 * execute so, for whatever reason, goes in packets, and has its answer or its error from
 * the responder; so the direct transport only ever succeeds. Short requests of a stream go
 * in packets, too, while the peer's engine is awake. Requests executed so take no
 * PSNs and change nothing of either end's transport state: the responder's engine does
 * not know of them. docs/architecture.md says why that keeps their order.
 *
 * The table may be shared by processes. Its device alone writes to it. Readers copy an
 * entry, and believe it if its version was even, and the same before and after.
 */
#ifndef URXE_RXE_DIRECT_H
#define URXE_RXE_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

/* Grants have their place by their key; one whose place is taken is not published. */
#define URXE_DIRECT_GRANTS 8192
/*
 * Queue pairs have theirs by their number, in the chunk that the table names for it: a device has
 * few blocks of numbers, and those of further ones are not published. No other block gets a chunk
 * later, so that versions count on.
 */
#define URXE_DIRECT_CHUNK  4096u /* QPNs, from a multiple of it on */
#define URXE_DIRECT_CHUNKS 16u

/* Bytes of the longest message: as long as its copy takes, whoever runs the engine does nothing
 * else. */
#define URXE_DIRECT_MAX (64u << 20)

struct urxe_extent;
struct urxe_path;

/* What a key grants: a region of one extent, or a bound window. */
struct urxe_direct_grant {
	_Alignas(64) uint32_t version; /* odd: it is being changed */
	uint32_t key;                  /* 0: nothing */
	uint32_t pd;
	uint32_t access; /* enum urxe_access */
	uint32_t qpn;    /* a type 2 window's; 0: any of the protection domain */
	uint64_t start;  /* address of the first byte in the key's address space */
	uint64_t length;
	uint64_t addr; /* and in the process's */
};

/* A queue pair that executes requests. */
struct urxe_direct_qp {
	uint32_t version;
	uint32_t qpn; /* 0: none */
	uint32_t dest_qpn;
	uint32_t pd;
	uint32_t access;    /* enum urxe_access, what the peer may do */
	uint32_t rd_atomic; /* READs that it may have outstanding */
	uint32_t reserved[2];
};

/* What a copy is bound to: it is made only if this is what it was when rights were looked up. */
union urxe_direct_state {
	uint64_t word;
	struct {
		uint32_t owner; /* the owner of the device keeps there what he likes */
		uint32_t epoch; /* counts withdrawals */
	};
};

struct urxe_direct_table {
	_Alignas(64) union urxe_direct_state state;
	_Alignas(64) struct urxe_direct_grant grants[URXE_DIRECT_GRANTS];
	struct urxe_direct_qp qps[URXE_DIRECT_CHUNKS][URXE_DIRECT_CHUNK];
	uint8_t chunks[(1u << 24) / URXE_DIRECT_CHUNK]; /* 1 + the index in qps; 0: none */
};

/* Requests of one copy, and extents of all of them. */
#define URXE_DIRECT_PARTS   16
#define URXE_DIRECT_EXTENTS 64

/* A request of a copy. Remote memory is what the table's addr says. */
struct urxe_direct_part {
	uint64_t remote; /* address in the other process */
	const struct urxe_extent *local;
	uint32_t n_local; /* none of them empty */
};

/* One copy: requests in their order, all of them WRITEs or all of them READs. */
struct urxe_direct_copy {
	uint64_t state; /* word of the table's state that it is bound to */
	const struct urxe_direct_part *parts;
	uint32_t n_parts;
	bool write; /* to the other process: the last 8 bytes of each part are stored last */
};

/* What the owner of a device does for it; each gets the device's ctx. None calls back. */
struct urxe_direct_ops {
	/*
	 * The table of the device that has the MAC address and the QPN; NULL where it cannot be
	 * reached directly now. Until `leave`, its withdrawals wait.
	 */
	const struct urxe_direct_table *(*enter)(void *ctx, const uint8_t mac[6], uint32_t qpn);
	void (*leave)(void *ctx);
	/*
	 * Between enter and leave. How many parts, from the first on, were copied; of the next one
	 * nothing was, or some. Within urxe_output it may move the frames that were given to that:
	 * what was written, and where the rest is to be.
	 */
	uint32_t (*copy)(void *ctx, const struct urxe_direct_copy *copy);
	/*
	 * Between enter and leave, at the device's time `now`: whether the peer's engine looks for
	 * packets without a pause, on a core that nobody else wants. Whoever asks often is also
	 * asking it to.
	 */
	bool (*awake)(void *ctx, uint64_t now);
	/* Rights were withdrawn from our own table: returns once nobody copies by them any more. */
	void (*drain)(void *ctx);
};

#endif
