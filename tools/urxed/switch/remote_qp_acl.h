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

#define REMOTE_QP_MAX       (1u << 18)
#define REMOTE_QP_PER_OWNER (VNIC_LEASES_MAX * LEASE_QPNS)

struct remote_qp_key {
	uint8_t gid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t qpn;    /* 24 bits */
};

struct remote_qp {
	struct remote_qp_key key;
	uint32_t times; /* that the owner has it; 0 = it had, under an earlier daemon */
	struct remote_qp_owner *owner; /* NULL = unused */
	LIST_ENTRY(remote_qp) link;    /* of the owner, or of those that are unused */
};
LIST_HEAD(remote_qp_list, remote_qp);

/* A process; all 0 at first but its number. */
struct remote_qp_owner {
	struct remote_qp_list list;
	uint32_t n;
	uint32_t process; /* the first block of its lease */
};

/* A remote queue pair, at that place of the table, has another owner; process 0: none any more. */
typedef void remote_qp_acl_store_fn(void *ctx, uint32_t place, const struct remote_qp_key *key,
				    uint32_t process);

struct hash;

struct remote_qp_acl {
	struct hash *by_key;
	struct remote_qp *all;
	uint32_t n; /* of them that were ever in use */
	struct remote_qp_list unused;
	struct remote_qp_owner
		*absent;              /* by process: what those have that have not come back yet */
	remote_qp_acl_store_fn *note; /* NULL = nobody wants to know */
	void *note_ctx;
};

/* 0, or a negative errno value; then nothing is left. */
int remote_qp_acl_open(struct remote_qp_acl *t);
/* Also for one that was never opened, all 0. */
void remote_qp_acl_close(struct remote_qp_acl *t);

/* -EADDRINUSE: it is another's; -ENOSPC: the owner has its share, or all are in use. */
int remote_qp_acl_add(struct remote_qp_acl *t, struct remote_qp_owner *owner,
		      const struct remote_qp_key *key);
/* -ENOENT: the owner does not have it. */
int remote_qp_acl_remove(struct remote_qp_acl *t, struct remote_qp_owner *owner,
			 const struct remote_qp_key *key);
/* The owner goes. */
void remote_qp_acl_remove_all(struct remote_qp_acl *t, struct remote_qp_owner *owner);

/*
 * What a process had under an earlier daemon; in the order of their places, and before the
 * first remote_qp_acl_add. -EINVAL: out of order, or twice.
 */
int remote_qp_acl_restore(struct remote_qp_acl *t, uint32_t place, const struct remote_qp_key *key,
			  uint32_t process);
/* The process is back: what is recalled of it is its own, for it to take it again. */
void remote_qp_acl_reclaim(struct remote_qp_acl *t, struct remote_qp_owner *owner);
/* It does not come back. */
void remote_qp_acl_forget(struct remote_qp_acl *t, uint32_t process);
/* What was recalled and not taken again is free. */
void remote_qp_acl_end_restore(struct remote_qp_acl *t);

/* NULL: nobody's. */
struct remote_qp_owner *remote_qp_acl_find(const struct remote_qp_acl *t,
					   const struct remote_qp_key *key);

#endif
