/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which process speaks to which remote queue pair.
 *
 * RC and UC packets do not say which queue pair they come from, so a process has to
 * say beforehand to which ones it is connected. The first one that does owns it
 * until it has taken that back as often, or is gone. Each has room for as many as
 * it may have queue pairs: none can fill the table for others.
 *
 * What a process that has survived another daemon said to that one stays its own until it
 * says so again: else another survivor could be first this time.
 */
#ifndef URXE_URXED_SWITCH_REMOTE_QP_ACL_H
#define URXE_URXED_SWITCH_REMOTE_QP_ACL_H

#include <stdint.h>
#include <sys/queue.h>

#include "urxed/session/qpn_lease.h"

#define REMOTE_MAX       (1u << 18)
#define REMOTE_PER_OWNER (VNIC_LEASES_MAX * LEASE_QPNS)

struct remote_key {
	uint8_t gid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t qpn;    /* 24 bits */
};

struct remote {
	struct remote_key key;
	uint32_t times;             /* that the owner has it; 0 = it had, under an earlier daemon */
	struct remote_owner *owner; /* NULL = unused */
	LIST_ENTRY(remote) link;    /* of the owner, or of those that are unused */
};
LIST_HEAD(remote_list, remote);

/* A process; all 0 at first but its number. */
struct remote_owner {
	struct remote_list list;
	uint32_t n;
	uint32_t process; /* the first block of its lease */
};

/* A remote queue pair, at that place of the table, has another owner; process 0: none any more. */
typedef void remote_note_fn(void *ctx, uint32_t place, const struct remote_key *key,
			    uint32_t process);

struct hash;

struct remote_table {
	struct hash *by_key;
	struct remote *all;
	uint32_t n; /* of them that were ever in use */
	struct remote_list unused;
	struct remote_owner *absent; /* by process: what those have that have not come back yet */
	remote_note_fn *note;        /* NULL = nobody wants to know */
	void *note_ctx;
};

/* 0, or a negative errno value; then nothing is left. */
int remote_open(struct remote_table *t);
/* Also for one that was never opened, all 0. */
void remote_close(struct remote_table *t);

/* -EADDRINUSE: it is another's; -ENOSPC: the owner has its share, or all are in use. */
int remote_take(struct remote_table *t, struct remote_owner *owner, const struct remote_key *key);
/* -ENOENT: the owner does not have it. */
int remote_put(struct remote_table *t, struct remote_owner *owner, const struct remote_key *key);
/* The owner goes. */
void remote_put_all(struct remote_table *t, struct remote_owner *owner);

/*
 * What a process had under an earlier daemon; in the order of their places, and before the
 * first remote_take. -EINVAL: out of order, or twice.
 */
int remote_recall(struct remote_table *t, uint32_t place, const struct remote_key *key,
		  uint32_t process);
/* The process is back: what is recalled of it is its own, for it to take it again. */
void remote_return(struct remote_table *t, struct remote_owner *owner);
/* It does not come back. */
void remote_forget(struct remote_table *t, uint32_t process);
/* What was recalled and not taken again is free. */
void remote_settle(struct remote_table *t);

/* NULL: nobody's. */
struct remote_owner *remote_find(const struct remote_table *t, const struct remote_key *key);

#endif
