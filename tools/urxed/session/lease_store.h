/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stores QPN leases in the file urxed.leases of the run directory, so that they survive the daemon.
 *
 * The file names each leased block's process and the token by which this process may claim all of
 * its blocks from a later daemon. That daemon leases nothing to new processes until the surviving
 * processes have claimed their blocks (3 s at most): their peers still send to these QPNs. The file
 * also stores the remote QPs and added QPNs (qpn_table.h) of each process. It stores the GID index
 * of each address, because survivors' QPs name their source by index. It stores the last lease of
 * each block, because the peers of a process that has ended may still send.
 *
 * The file is valid for one boot. Format 4 is converted; a file of another format counts as empty.
 * Each record is changed by a single write, so a killed daemon leaves the old record or the new
 * one.
 */
#ifndef URXE_URXED_SESSION_LEASE_STORE_H
#define URXE_URXED_SESSION_LEASE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "urxed/hostnet/host.h"
#include "urxed/session/qpn_lease.h"
#include "urxed/switch/tables/remote_qp_acl.h"

#define LEASE_STORE_NAME "urxed.leases"

struct lease_store_entry {
	uint64_t token;         /* 0 = the block is not leased */
	uint64_t start;         /* process_identity() of the process; 0 = unknown */
	int32_t pid;            /* 0 = unknown: the process lives in another PID namespace */
	uint32_t direct_uplink; /* 1 = the process has a packet socket on the direct uplink */
};

struct lease_store_address {
	uint8_t ip[16];
	uint16_t vlan;
	uint8_t valid;
	uint8_t reserved;
	uint32_t freed; /* host_address.freed: counts removals; 0 = the host has the address */
};

struct lease_store {
	int fd;               /* -1 = nothing is stored */
	uint32_t n_claimable; /* blocks that surviving processes may still claim */
	/* True after lease_store_end_claims: only frozen programs, and those that have lost their
	 * connection to this daemon, may still claim blocks. */
	bool ended;
	uint32_t last; /* the block that the earlier daemon has leased last */
	bool claimable[LEASE_BLOCKS];
	uint64_t claim_until[LEASE_BLOCKS]; /* ns; of lost blocks (lease_store_lose), else 0 */
	struct lease_past past[LEASE_BLOCKS];
	struct lease_store_entry entries[LEASE_BLOCKS];
	/* Entries that lease_store_end_claims has removed, until the blocks are leased again. */
	struct lease_store_entry unclaimed[LEASE_BLOCKS];
	struct lease_store_address addresses[HOST_ADDRESSES]; /* by GID index */
};

/*
 * Reads the file of an earlier daemon in run_dir, and makes its blocks claimable; drops those of
 * processes that have ended since. Returns 0 or a negative errno value.
 */
int lease_store_open(struct lease_store *r, const char *run_dir);
/*
 * Closes the file. Removes it if it has no leases, which may be claimed later, and, with
 * keep_ended, none that ended less than LEASE_QUIET_NS ago. Returns whether there are leases that
 * may be claimed later.
 */
bool lease_store_close(struct lease_store *r, const char *run_dir, bool keep_ended);

/*
 * Stores the lease of the block that begins with qpn. token is that of the process's other blocks,
 * 0 = this is the first. Returns the token, never 0.
 */
uint64_t lease_store_add(struct lease_store *r, uint32_t qpn, pid_t pid, uid_t user,
			 uint64_t token);
/*
 * Gives the block that begins with qpn back to process pid. Returns 0; -EPERM: the process may not
 * claim it with this token.
 */
int lease_store_claim(struct lease_store *r, uint32_t qpn, uint64_t token, pid_t pid, uid_t user);
/* Returns the first QPN of a block that process pid may claim with this token; 0 = none. */
uint32_t lease_store_claimable_qpn(const struct lease_store *r, uint64_t token, pid_t pid);
/*
 * Stores whether the process of the block that begins with qpn has a packet socket on the direct
 * uplink.
 */
void lease_store_set_direct_uplink(struct lease_store *r, uint32_t qpn, bool direct_uplink);
void lease_store_remove(struct lease_store *r, uint32_t qpn);

/*
 * Whether the process of the block that begins with qpn lives, as process_lives().
 */
bool lease_store_is_alive(const struct lease_store *r, uint32_t qpn);
/*
 * Lets the process of the block that begins with qpn claim the block until `until` (ns, as
 * now_ns()): the process has lost its connection to this daemon.
 */
void lease_store_lose(struct lease_store *r, uint32_t qpn, uint64_t until);

/* Whether process pid has blocks that it may still claim. */
bool lease_store_has_claimable(const struct lease_store *r, pid_t pid);
/*
 * Drops the claimable blocks of processes that have ended, and returns the number of those left.
 * After lease_store_end_claims always 0: some programs may still claim blocks, but nobody waits for
 * them.
 */
uint32_t lease_store_count_claimable(struct lease_store *r);
/*
 * Whether a process is frozen (docs/checkpoint.md): it can claim its blocks only after it was
 * thawed.
 */
typedef bool lease_store_frozen_fn(void *ctx, pid_t pid);
/*
 * Ends the claims of each process that is not frozen, or has ended, and frees its blocks. Lost
 * blocks (lease_store_lose) whose time is not over stay claimable while their process lives.
 * is_frozen NULL: no process is frozen. The caller repeats the call while programs have claims.
 * `now` in ns.
 */
void lease_store_end_claims(struct lease_store *r, uint64_t now, lease_store_frozen_fn *is_frozen,
			    void *ctx);

/*
 * Whether the process that had the block under an earlier daemon lives, though it did not claim the
 * block in time, as after SIGSTOP. It may still be writing to inboxes. False once another process
 * has the block.
 */
bool lease_store_lives_without_claim(const struct lease_store *r, uint32_t block);

/*
 * Stores the registration of a remote QP, at its place in remote_qp_acl; record->process 0 = the
 * place is empty.
 */
void lease_store_put_remote(struct lease_store *r, uint32_t place,
			    const struct remote_qp_record *record);
/*
 * Reads the registration stored at a place. Returns 0. -ENOENT: the place is empty, or its process
 * can no longer claim its lease, and this function clears the place in the file. -ENODATA: the file
 * ends before this place.
 */
int lease_store_get_remote(struct lease_store *r, uint32_t place, struct remote_qp_record *record);

/* Stores an added QPN, at its place in the qpn_table; record->process 0 = the place is empty. */
void lease_store_put_qpn(struct lease_store *r, uint32_t place, const struct qpn_record *record);
/*
 * Reads up to n of the QPNs stored from a place on, and returns their number; 0: there are no more.
 * A QPN whose process can no longer claim its lease gets process 0 in `records`, and is cleared in
 * the file.
 */
uint32_t lease_store_get_qpns(struct lease_store *r, uint32_t place, struct qpn_record *records,
			      uint32_t n);

/* Stores the GID index of each of the host's addresses. */
void lease_store_put_addresses(struct lease_store *r, const struct host *host);
/*
 * Reserves the stored GID indices for the same addresses in `host`. A new address takes first the
 * indices that are not reserved, then those of addresses that an earlier daemon's host had lost,
 * and last those of its other addresses.
 */
void lease_store_reserve_addresses(const struct lease_store *r, struct host *host);

#endif
