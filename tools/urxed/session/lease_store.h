/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The leases on record, so that they survive the daemon.
 *
 * urxed.leases in the run directory says of each block of queue pair numbers
 * which process has it and by what token, one for all of its blocks, it may claim them
 * from a later daemon.
 * That daemon gives nothing to newcomers before the processes that survived
 * have claimed theirs: a survivor's queue pairs are still what their peers send to.
 * It also says which index of the GID table each address has, as survivors' queue
 * pairs name their source by that, and to which remote queue pairs each process speaks.
 *
 * The file is the daemon's own, and of one boot: after another it counts as empty,
 * as does one of another format. Each change is one write, which a daemon that is
 * killed has made or not.
 */
#ifndef URXE_URXED_SESSION_LEASE_STORE_H
#define URXE_URXED_SESSION_LEASE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "urxed/hostnet/host.h"
#include "urxed/session/qpn_lease.h"
#include "urxed/switch/remote_qp_acl.h"

#define LEASE_STORE_NAME "urxed.leases"

struct lease_store_entry {
	uint64_t token; /* 0 = nobody has the block */
	uint64_t start; /* of the process, in clock ticks since boot; 0 = unknown */
	int32_t pid;    /* 0 = unknown: it lives in another PID namespace */
	uint32_t reserved;
};

struct lease_store_address {
	uint8_t ip[16];
	uint16_t vlan;
	uint8_t valid;
	uint8_t reserved[5];
};

struct lease_store {
	int fd;           /* -1 = nothing is written */
	uint32_t awaited; /* blocks whose processes may still claim them */
	uint32_t last;    /* the highest block that was found on record, of whoever */
	bool waits[LEASE_BLOCKS];
	struct lease_store_entry entries[LEASE_BLOCKS];
	struct lease_store_address addresses[HOST_ADDRESSES]; /* by index */
};

/*
 * Reads what an earlier daemon has left in run_dir, without the processes that
 * ended since. 0 or a negative errno value.
 */
int lease_store_open(struct lease_store *r, const char *run_dir);
/* Removes the file, unless it has blocks on record: those may be claimed later. */
void lease_store_close(struct lease_store *r, const char *run_dir);

/*
 * Puts the block that begins with qpn on record, with the token of the process's others, or 0
 * where it is its first; returns the token, never 0.
 */
uint64_t lease_store_add(struct lease_store *r, uint32_t qpn, pid_t pid, uint64_t token);
/* 0: the block is pid's again; -EPERM: it is not on record with this token, or not awaited. */
int lease_store_claim(struct lease_store *r, uint32_t qpn, uint64_t token, pid_t pid);
/* The first QPN of a block that is awaited with this token; 0: there is none. */
uint32_t lease_store_next_claimable(const struct lease_store *r, uint64_t token, pid_t pid);
void lease_store_remove(struct lease_store *r, uint32_t qpn);

/* Whether a process has blocks that it may still claim. */
bool lease_store_awaits(const struct lease_store *r, pid_t pid);
/* How many blocks are awaited; those of processes that ended are so no longer. */
uint32_t lease_store_count_awaited(struct lease_store *r);
/* Awaits nobody any more: what was not claimed is free. */
void lease_store_end_claims(struct lease_store *r);

/* Puts on record which process speaks to a remote queue pair, by its place; 0: none any more. */
void lease_store_put_remote(struct lease_store *r, uint32_t place, const struct remote_qp_key *key,
			    uint32_t process);
/*
 * What is on record there. -ENOENT: nothing, or of a process that is not awaited, and then it
 * is so no longer; -ENODATA: nor is there anything behind it.
 */
int lease_store_get_remote(struct lease_store *r, uint32_t place, struct remote_qp_key *key,
			   uint32_t *process);

/* Puts the indices of the host's addresses on record. */
void lease_store_put_addresses(struct lease_store *r, const struct host *host);
/* The host's addresses will have the indices that are on record. */
void lease_store_reserve_addresses(const struct lease_store *r, struct host *host);

#endif
