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

#define RECORD_NAME "urxed.leases"

struct record_entry {
	uint64_t token; /* 0 = nobody has the block */
	uint64_t start; /* of the process, in clock ticks since boot; 0 = unknown */
	int32_t pid;    /* 0 = unknown: it lives in another PID namespace */
	uint32_t reserved;
};

struct record_address {
	uint8_t ip[16];
	uint16_t vlan;
	uint8_t valid;
	uint8_t reserved[5];
};

struct record {
	int fd;           /* -1 = nothing is written */
	uint32_t awaited; /* blocks whose processes may still claim them */
	uint32_t last;    /* the highest block that was found on record, of whoever */
	bool waits[LEASE_BLOCKS];
	struct record_entry entries[LEASE_BLOCKS];
	struct record_address addresses[HOST_ADDRESSES]; /* by index */
};

/*
 * Reads what an earlier daemon has left in run_dir, without the processes that
 * ended since. 0 or a negative errno value.
 */
int record_open(struct record *r, const char *run_dir);
/* Removes the file, unless it has blocks on record: those may be claimed later. */
void record_close(struct record *r, const char *run_dir);

/*
 * Puts the block that begins with qpn on record, with the token of the process's others, or 0
 * where it is its first; returns the token, never 0.
 */
uint64_t record_lease(struct record *r, uint32_t qpn, pid_t pid, uint64_t token);
/* 0: the block is pid's again; -EPERM: it is not on record with this token, or not awaited. */
int record_claim(struct record *r, uint32_t qpn, uint64_t token, pid_t pid);
/* The first QPN of a block that is awaited with this token; 0: there is none. */
uint32_t record_awaited_with(const struct record *r, uint64_t token, pid_t pid);
void record_drop(struct record *r, uint32_t qpn);

/* Whether a process has blocks that it may still claim. */
bool record_awaits(const struct record *r, pid_t pid);
/* How many blocks are awaited; those of processes that ended are so no longer. */
uint32_t record_awaited(struct record *r);
/* Awaits nobody any more: what was not claimed is free. */
void record_give_up(struct record *r);

/* Puts on record which process speaks to a remote queue pair, by its place; 0: none any more. */
void record_remote(struct record *r, uint32_t place, const struct remote_key *key,
		   uint32_t process);
/*
 * What is on record there. -ENOENT: nothing, or of a process that is not awaited, and then it
 * is so no longer; -ENODATA: nor is there anything behind it.
 */
int record_remote_at(struct record *r, uint32_t place, struct remote_key *key, uint32_t *process);

/* Puts the indices of the host's addresses on record. */
void record_addresses(struct record *r, const struct host *host);
/* The host's addresses will have the indices that are on record. */
void record_recall(const struct record *r, struct host *host);

#endif
