/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stores QPN leases in the file urxed.leases of the run directory, so that they survive the daemon.
 *
 * The file names each leased block's process, and the token by which this process may claim all of
 * its blocks from a later daemon. At that daemon a new process waits for its lease until the
 * surviving processes have claimed their blocks (3 s at most), because their peers still send to
 * these QPNs. Only a process that demands a block by its number does not wait.
 *
 * The file also stores the remote QPs (remote_qp_acl.h) and added QPNs (qpn_table.h) of each
 * process. It stores the GID index of each address, because survivors' QPs name their source by
 * index. It stores which user had the last lease of each block, because the peers of a process that
 * has ended may still send.
 *
 * The file is valid for one boot. Format 4 is converted; a file of another format counts as empty.
 * Each record is changed by a single write, so a killed daemon leaves either the old record or the
 * new one.
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
	uint32_t direct_uplink; /* 1 = the process has packet sockets on the uplink */
};

struct lease_store_address {
	uint8_t ip[16];
	uint16_t vlan;
	uint8_t valid;
	uint8_t reserved;
	uint32_t freed; /* host_address.freed of the index; 0 = the host has the address */
};

struct lease_store {
	int fd;               /* -1 = nothing is stored */
	uint32_t n_claimable; /* number of blocks in `claimable` */
	/* True after lease_store_end_claims: from then on only frozen programs, and those that have
	 * lost their connection to this daemon, may claim blocks. */
	bool claims_ended;
	uint32_t last; /* the block that an earlier daemon has leased most recently */
	bool claimable[LEASE_BLOCKS];
	uint64_t claim_until[LEASE_BLOCKS]; /* from lease_store_lose, ns; 0 = not lost */
	struct lease_past past[LEASE_BLOCKS];
	struct lease_store_entry entries[LEASE_BLOCKS];
	/* Copies of the entries that lease_store_end_claims has removed, until their blocks are
	 * leased again. */
	struct lease_store_entry unclaimed[LEASE_BLOCKS];
	struct lease_store_address addresses[HOST_ADDRESSES]; /* by GID index */
};

/* Opens the file in run_dir, and makes blocks that an earlier daemon has leased claimable; drops
 * those of processes that have ended since. Returns 0 or a negative errno value. */
int lease_store_open(struct lease_store *r, const char *run_dir);
/*
 * Closes the file, and removes it unless the next daemon needs it: for leases, which processes may
 * claim, and with keep_ended also for leases that ended less than LEASE_QUIET_NS ago. Returns
 * whether there are leases.
 */
bool lease_store_close(struct lease_store *r, const char *run_dir, bool keep_ended);

/* Stores the lease of the block that begins with qpn. token: that of the process's other blocks; 0
 * = the process has none. Returns the token, which is never 0. */
uint64_t lease_store_add(struct lease_store *r, uint32_t qpn, pid_t pid, uid_t user,
			 uint64_t token);
/* Gives the block that begins with qpn back to process pid. Returns 0, or -EPERM if the process may
 * not claim it with this token. */
int lease_store_claim(struct lease_store *r, uint32_t qpn, uint64_t token, pid_t pid, uid_t user);
/*
 * Returns the first QPN of a block that process pid may claim with this token; 0 = there is none.
 */
uint32_t lease_store_claimable_qpn(const struct lease_store *r, uint64_t token, pid_t pid);
/*
 * Stores whether the process of the block that begins with qpn has a packet socket on the direct
 * uplink.
 */
void lease_store_set_direct_uplink(struct lease_store *r, uint32_t qpn, bool direct_uplink);
void lease_store_remove(struct lease_store *r, uint32_t qpn);

/* Whether the process of the block that begins with qpn lives, as process_lives() says. */
bool lease_store_is_alive(const struct lease_store *r, uint32_t qpn);
/* Call it when the process of the block that begins with qpn has lost its connection to this
 * daemon. The process may claim the block until `until` (ns, as now_ns()), and longer while it is
 * frozen. */
void lease_store_lose(struct lease_store *r, uint32_t qpn, uint64_t until);

/* Whether process pid has blocks that it may still claim. */
bool lease_store_has_claimable(const struct lease_store *r, pid_t pid);
/*
 * Drops the claimable blocks of processes that have ended, and returns how many are left. After
 * lease_store_end_claims it always returns 0: some programs may still claim blocks, but new
 * processes no longer wait for that.
 */
uint32_t lease_store_prune_claims(struct lease_store *r);
/* Whether a process is frozen (docs/checkpoint.md), so that it can claim its blocks only after its
 * thaw. */
typedef bool lease_store_frozen_fn(void *ctx, pid_t pid);
/*
 * Ends the claims of each process that has ended or is not frozen, and frees its blocks. But lost
 * blocks (lease_store_lose) stay claimable until their time is over, as long as their process
 * lives. is_frozen NULL: no process is frozen. The caller repeats the call while programs have
 * claims. `now` in ns.
 */
void lease_store_end_claims(struct lease_store *r, uint64_t now, lease_store_frozen_fn *is_frozen,
			    void *ctx);

/*
 * Whether a process lives that had the block and did not claim it in time, for instance because of
 * SIGSTOP. It may still write to inboxes. False when another process has leased the block since.
 */
bool lease_store_lives_without_claim(const struct lease_store *r, uint32_t block);

/* Stores the registration of a remote QP at its place in remote_qp_acl; record->process 0 = the
 * place is empty. */
void lease_store_put_remote(struct lease_store *r, uint32_t place,
			    const struct remote_qp_record *record);
/*
 * Reads the registration stored at a place. Returns 0; -ENODATA: the file ends before this place;
 * -ENOENT: the place is empty, or its process can no longer claim its lease. In the last case it
 * also clears the place in the file.
 */
int lease_store_get_remote(struct lease_store *r, uint32_t place, struct remote_qp_record *record);

/* Stores an added QPN at its place in the qpn_table; record->process 0 = the place is empty. */
void lease_store_put_qpn(struct lease_store *r, uint32_t place, const struct qpn_record *record);
/*
 * Reads up to n of the QPNs stored from a place on, and returns their number; 0: the file has no
 * more. If a QPN's process can no longer claim its lease, sets process 0 in `records`, and clears
 * the QPN in the file.
 */
uint32_t lease_store_get_qpns(struct lease_store *r, uint32_t place, struct qpn_record *records,
			      uint32_t n);

/* Stores the GID index of each of the host's addresses. */
void lease_store_put_addresses(struct lease_store *r, const struct host *host);
/*
 * Reserves the stored GID indices in `host` for the addresses that had them. A new address takes an
 * index that is not reserved; if there is none, that of an address that the earlier daemon's host
 * had lost; and last that of one of its other addresses.
 */
void lease_store_reserve_addresses(const struct lease_store *r, struct host *host);

#endif
