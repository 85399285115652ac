/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Access control list: which process may send to which remote QP. Sessions fill it through the
 * switch, antispoof.c reads it.
 *
 * RC and UC packets do not name their source QP. So a process registers the remote QPs that its own
 * QPs are connected to, and the first process to do so owns the remote QP until it has removed it
 * as often as added, or ends. A process can own as many remote QPs as it may have QPs, so no
 * process can fill the table for others.
 *
 * After a restart of the daemon, the remote QPs of a surviving process stay reserved for it until
 * it adds them again: otherwise another survivor could be first.
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
	uint32_t times; /* how often the owner added it; 0 = restored, not added again yet */
	struct remote_qp_owner *owner; /* NULL = unused */
	LIST_ENTRY(remote_qp) link;    /* in the owner's list, or in `unused` */
};
LIST_HEAD(remote_qp_list, remote_qp);

/* A process. All members but `process` start as zero. */
struct remote_qp_owner {
	struct remote_qp_list list;
	uint32_t n;
	uint32_t process; /* the first block of its lease */
};

/* Stores the owner of the remote QP at index `place` of the table; process 0 = none. */
typedef void remote_qp_acl_store_fn(void *ctx, uint32_t place, const struct remote_qp_key *key,
				    uint32_t process);

struct hash;

struct remote_qp_acl {
	struct hash *by_key;
	struct remote_qp *all;
	uint32_t n; /* entries that were ever in use */
	struct remote_qp_list unused;
	struct remote_qp_owner *absent; /* by process: restored remote QPs of processes that have
					   not attached again yet */
	remote_qp_acl_store_fn *store;  /* NULL = changes are not stored */
	void *store_ctx;
};

/* Returns 0, or a negative errno value; then nothing needs to be closed. */
int remote_qp_acl_open(struct remote_qp_acl *t);
/* Also for a zeroed table. */
void remote_qp_acl_close(struct remote_qp_acl *t);

/* -EADDRINUSE: another process owns it; -ENOSPC: the owner's limit or the table is full. */
int remote_qp_acl_add(struct remote_qp_acl *t, struct remote_qp_owner *owner,
		      const struct remote_qp_key *key);
/* -ENOENT: the owner does not have it. */
int remote_qp_acl_remove(struct remote_qp_acl *t, struct remote_qp_owner *owner,
			 const struct remote_qp_key *key);
/* Removes all remote QPs of an owner whose process ends. */
void remote_qp_acl_remove_all(struct remote_qp_acl *t, struct remote_qp_owner *owner);

/*
 * Restores an entry of an earlier daemon. Calls come in the order of `place` and before the first
 * remote_qp_acl_add. -EINVAL: out of order, or a duplicate.
 */
int remote_qp_acl_restore(struct remote_qp_acl *t, uint32_t place, const struct remote_qp_key *key,
			  uint32_t process);
/* Gives the restored entries of a surviving process to `owner`, which adds each of them again. */
void remote_qp_acl_reclaim(struct remote_qp_acl *t, struct remote_qp_owner *owner);
/* Drops the restored entries of a process that can no longer claim its leases. */
void remote_qp_acl_forget(struct remote_qp_acl *t, uint32_t process);
/* Drops all restored entries that were not added again. */
void remote_qp_acl_end_restore(struct remote_qp_acl *t);

/* NULL: no process owns it. */
struct remote_qp_owner *remote_qp_acl_find(const struct remote_qp_acl *t,
					   const struct remote_qp_key *key);

#endif
