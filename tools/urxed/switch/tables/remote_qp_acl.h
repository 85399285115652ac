/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Access control list: which process may send RC and UC packets to which remote QP. Sessions fill
 * it through the switch, and antispoof.c reads it for each frame of a process, both in the daemon's
 * only thread.
 *
 * A remote QP, named by GID and QPN, is the queue pair to which a connected QP of a process sends.
 * RC and UC packets do not name their source QP. So a process registers the remote QP of each of
 * its connected QPs. Several processes may register the same remote QP.
 *
 * Two QPs of this host exchange packets only if each is registered as the remote QP of the other.
 *
 * A remote QP of another host has one holder at a time for RC, and one for UC. The holder is the
 * process with the earliest registration among those that, since their registration, have received
 * a packet of that service from that host at their registered QP. So if a process with an earlier
 * registration receives its first packet later, it becomes the holder. While there is no holder,
 * the switch forwards RC packets of every process that has registered the remote QP: the responder
 * answers only its own peer, which thereby becomes the holder. UC has no answers, so the switch
 * then forwards only UC packets of the process with the earliest registration.
 *
 * The switch does not see packets to a process with a direct uplink. So for each remote QP of
 * another host that such a process registers, packets of that host count as received. This gives
 * the process no new right: with its packet socket it can send any frame.
 *
 * After a restart of the daemon, the remote QPs of a surviving process keep their places in that
 * order until the process registers them again: otherwise another survivor could become the first.
 */
#ifndef URXE_URXED_SWITCH_TABLES_REMOTE_QP_ACL_H
#define URXE_URXED_SWITCH_TABLES_REMOTE_QP_ACL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "urxed/session/qpn_lease.h"

#define REMOTE_QP_MAX       (1u << 18)
#define REMOTE_QP_PER_OWNER (VNIC_LEASES_MAX * LEASE_QPNS)
/* Limit of the remote QPs of one local QP. A QP is connected to one remote QP, but its process may
 * add that one before it removes those of earlier connections. */
#define REMOTE_QP_PER_LOCAL 8
/* Limit of the processes of one user that have registered the same remote QP. A remote QP has only
 * one peer, and for a frame to a contested remote QP the switch walks along all these processes. */
#define REMOTE_QP_CLAIMS_PER_USER 16

struct remote_qp_key {
	uint8_t gid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t qpn;    /* 24 bits */
};

/* The service of a connected QP. */
enum remote_qp_service { REMOTE_QP_RC, REMOTE_QP_UC, REMOTE_QP_SERVICES };

/* Whether a process may send a packet to a remote QP, and why not. */
enum remote_qp_access {
	REMOTE_QP_GRANTED,
	REMOTE_QP_UNREGISTERED, /* no: the process has not registered it */
	REMOTE_QP_NOT_MUTUAL,   /* no: it is on this host, and has not registered the process */
	REMOTE_QP_CONTESTED,    /* no: its holder is another process that has registered it */
};

/* A registration as the lease store keeps it for the next daemon. process 0 = none. */
struct remote_qp_record {
	struct remote_qp_key key;
	uint32_t local;   /* QPN of the process's own QP */
	uint32_t process; /* first block of the process's lease */
	uint32_t heard;   /* bits 1 << enum remote_qp_service: the claim's `heard` */
	uint64_t order;   /* place in the order of first registrations */
};

struct remote_qp_claim;
struct remote_qp_target;
LIST_HEAD(remote_qp_targets, remote_qp_target);

/* One remote QP of one local QP. */
struct remote_qp {
	struct remote_qp_key key;
	uint32_t local;
	uint32_t times; /* how often the owner added it, minus the removals; 0 = restored, and not
			   added again yet */
	struct remote_qp_owner *owner; /* NULL = unused */
	struct remote_qp_claim *claim;
	LIST_ENTRY(remote_qp) link;       /* in the owner's list, or in `unused` */
	LIST_ENTRY(remote_qp) local_link; /* in the list of the local QP */
};
LIST_HEAD(remote_qp_list, remote_qp);

/* A process that registers remote QPs. All members but `process` and `user` start as zero. */
struct remote_qp_owner {
	struct remote_qp_list list;
	uint32_t n;
	uint32_t process; /* first block of the process's lease */
	uid_t user;
	bool always_heard; /* remote_qp_acl_hear_always was called */
};

/* Stores the registration at index `place` of the table for the next daemon. */
typedef void remote_qp_acl_store_fn(void *ctx, uint32_t place,
				    const struct remote_qp_record *record);

struct hash;

/* The registrations of one block of local QPNs. */
struct remote_qp_block {
	uint32_t n;
	struct remote_qp_list local[LEASE_QPNS]; /* by local QPN */
};

struct remote_qp_acl {
	struct hash *by_key; /* from keys to indices of `targets` */
	struct remote_qp *all;
	struct remote_qp_target *targets;
	struct remote_qp_block **by_local; /* NULL = the block has no registrations */
	uint32_t n;                        /* entries of `all` that were ever in use */
	uint32_t n_targets;                /* entries of `targets` that were ever in use */
	struct remote_qp_list unused;
	struct remote_qp_targets unused_targets;
	uint64_t order;                 /* order of the newest first registration */
	struct remote_qp_owner *absent; /* by process: the restored remote QPs of processes that
					   have not attached again yet */
	remote_qp_acl_store_fn *store;  /* NULL = changes are not stored */
	void *store_ctx;
};

/* Returns 0, or a negative errno value, after which the caller has nothing to close. */
int remote_qp_acl_open(struct remote_qp_acl *t);
/* Frees all memory; accepts a zeroed table. */
void remote_qp_acl_close(struct remote_qp_acl *t);

/*
 * Registers the remote QP of a local QP, which must be the owner's. If several calls have the same
 * key, each needs a removal. Returns 0; -ENOSPC: the local QP, the owner, its user or the table has
 * reached its limit; -EACCES: another process has registered this remote QP for the same local QP;
 * -ENOMEM.
 */
int remote_qp_acl_add(struct remote_qp_acl *t, struct remote_qp_owner *owner, uint32_t local,
		      const struct remote_qp_key *key);
/* Undoes one remote_qp_acl_add; after the last one the entry is gone. Returns 0, or -ENOENT if the
 * owner does not have the entry. */
int remote_qp_acl_remove(struct remote_qp_acl *t, struct remote_qp_owner *owner, uint32_t local,
			 const struct remote_qp_key *key);
/* Removes at most `most` remote QPs of an owner, however often each was added; returns the number
 * of removed ones. */
uint32_t remote_qp_acl_remove_some(struct remote_qp_acl *t, struct remote_qp_owner *owner,
				   uint32_t most);
/* Removes all remote QPs of an owner whose process ends. */
void remote_qp_acl_remove_all(struct remote_qp_acl *t, struct remote_qp_owner *owner);

/*
 * Restores an entry of an earlier daemon, until the entry's process attaches again. Calls come in
 * the order of `place`, and before the first remote_qp_acl_add. Returns 0; -EINVAL: out of order, a
 * duplicate, or invalid; -ENOMEM.
 */
int remote_qp_acl_restore(struct remote_qp_acl *t, uint32_t place,
			  const struct remote_qp_record *record);
/* Gives the restored entries of a surviving process to `owner`, which adds each of them again. */
void remote_qp_acl_reclaim(struct remote_qp_acl *t, struct remote_qp_owner *owner);
/* Drops the restored entries of a process that can no longer claim its leases. */
void remote_qp_acl_forget(struct remote_qp_acl *t, uint32_t process);
/* Drops the restored entries that no process has added again, except those of processes that may
 * still claim their leases. */
void remote_qp_acl_end_restore(struct remote_qp_acl *t, const bool claimable[LEASE_BLOCKS]);

/*
 * Returns whether the owner may send from its address `sip` to a QP of this host. Both QPs must be
 * registered with each other. To grant it, looks at no more than REMOTE_QP_PER_LOCAL entries of
 * each QP.
 */
enum remote_qp_access remote_qp_acl_check_same_host(const struct remote_qp_acl *t,
						    const struct remote_qp_owner *owner,
						    const uint8_t sip[16],
						    const struct remote_qp_key *to);
/* Returns whether the owner may send to a QP of another host. */
enum remote_qp_access remote_qp_acl_check_other_host(const struct remote_qp_acl *t,
						     const struct remote_qp_owner *owner,
						     enum remote_qp_service service,
						     const struct remote_qp_key *to);
/*
 * Whether the owner may send a CNP, which makes its receiver send more slowly, to that QP. UD QPs
 * answer datagrams with CNPs, so a CNP may also go to a QP that is not known to be connected to
 * another process.
 */
bool remote_qp_acl_cnp_to_same_host(const struct remote_qp_acl *t,
				    const struct remote_qp_owner *owner, const uint8_t sip[16],
				    const struct remote_qp_key *to);
bool remote_qp_acl_cnp_to_other_host(const struct remote_qp_acl *t,
				     const struct remote_qp_owner *owner,
				     const struct remote_qp_key *to);

/* Call it when the owner gets a direct uplink: for all its remote QPs of other hosts, present and
 * future ones, packets of these hosts count as received. */
void remote_qp_acl_hear_always(struct remote_qp_acl *t, struct remote_qp_owner *owner);

/* Call it when an RC or UC packet from the host with address `sip` has arrived for a local QP. Has
 * no effect unless the QP has exactly one remote QP on that host. */
void remote_qp_acl_heard(struct remote_qp_acl *t, uint32_t local, const uint8_t sip[16],
			 enum remote_qp_service service);

#endif
