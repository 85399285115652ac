/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which process has which added QPN. A process adds a QPN (VNIC_ATTACH_QPN_ADD) if an HCA backs the
 * device, or if an HCA chose the QPN earlier, here or before a restore. An HCA chooses any number
 * of 24 bits, so these QPNs may be in no process's lease (qpn_lease.h). Processes also add leased
 * QPNs, so that VNIC_ATTACH_QPN_QUERY of other processes finds them. Sessions fill the table, and
 * lease_owner reads it for QPNs that are in no lease.
 *
 * Entries survive the daemon (lease_store.h): the next daemon reserves each QPN for the surviving
 * process. The reservation ends when the process adds the QPN again. Otherwise it ends with the
 * claims (qpn_table_end_restore), unless the process may then still claim its lease.
 */
#ifndef URXE_URXED_SESSION_QPN_TABLE_H
#define URXE_URXED_SESSION_QPN_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <vnic/attach_protocol.h>

#define QPN_TABLE_MAX       (1u << 18)
#define QPN_TABLE_PER_OWNER (VNIC_LEASES_MAX * VNIC_LEASE_QPNS)

/* An entry as the lease store keeps it for the next daemon. `process` 0: the entry is unused. */
struct qpn_record {
	uint32_t qpn;
	uint32_t process; /* first block of the process's lease */
};

struct qpn_entry {
	struct qpn_holder *holder; /* NULL: reserved for `process`, or unused */
	uint32_t qpn;
	uint32_t process;           /* as in qpn_record; 0 = unused */
	uint32_t times;             /* additions minus removals of the QPN by the holder */
	uint32_t flags;             /* VNIC_QPN_* */
	LIST_ENTRY(qpn_entry) link; /* in the holder's list, or in `unused`; reserved: in none */
};
LIST_HEAD(qpn_entries, qpn_entry);

/* A process that has added QPNs. All members but `owner` and `process` start as zero. */
struct qpn_holder {
	void *owner;      /* the process's struct switch_port */
	uint32_t process; /* as in qpn_record */
	uint32_t n;       /* number of entries in the list */
	struct qpn_entries list;
};

/* Stores the entry at index `place` for the next daemon. */
typedef void qpn_table_store_fn(void *ctx, uint32_t place, const struct qpn_record *record);

struct hash;

struct qpn_table {
	struct hash *by_qpn; /* NULL: no QPN was ever added, so the table uses no memory */
	struct qpn_entry *all;
	uint32_t n;                            /* entries of `all` that were ever in use */
	struct qpn_entries unused;             /* entries among these that are unused now */
	uint16_t in_block[VNIC_BLOCKS];        /* number of entries in each block of QPNs */
	uint16_t uplink_in_block[VNIC_BLOCKS]; /* those of them that have VNIC_QPN_UPLINK */
	qpn_table_store_fn *store;             /* NULL = changes are not stored */
	void *store_ctx;
};

/* Frees the memory of the table; accepts a zeroed table. */
void qpn_table_close(struct qpn_table *t);

/*
 * Gives the QPN to the holder. If the holder already has the QPN, changes its flags and counts the
 * addition: an HCA may choose a number again before the process has removed it for the earlier
 * queue pair. Returns 0; -EEXIST: another holder has the QPN, or it is reserved for another
 * process; -ENOSPC: a limit of the holder or the table is reached; -EINVAL: QP0, QP1, the multicast
 * QPN or more; -ENOMEM.
 */
int qpn_table_add(struct qpn_table *t, struct qpn_holder *holder, uint32_t qpn, uint32_t flags);
/* Changes the flags (VNIC_QPN_*) of a QPN. Returns 0, or -ENOENT if the holder does not have it. */
int qpn_table_set(struct qpn_table *t, struct qpn_holder *holder, uint32_t qpn, uint32_t flags);
/* Undoes one addition; after the last one the holder does not have the QPN any more. Returns 0, or
 * -ENOENT if the holder does not have it. */
int qpn_table_remove(struct qpn_table *t, struct qpn_holder *holder, uint32_t qpn);
/* Removes at most `most` QPNs of a holder; returns the number of removed ones. */
uint32_t qpn_table_remove_some(struct qpn_table *t, struct qpn_holder *holder, uint32_t most);

/*
 * Returns the entry of a QPN that a holder has; NULL: there is none, or the QPN is only reserved.
 */
const struct qpn_entry *qpn_table_find(const struct qpn_table *t, uint32_t qpn);
/* Whether the uplink must receive packets of other hosts to the block, because an engine executes
 * the queue pair of one of its QPNs (VNIC_QPN_UPLINK). */
bool qpn_table_needs_uplink(const struct qpn_table *t, uint32_t block);
/* Returns qpn_holder.owner of the process that has added the QPN; NULL: none has, or the QPN is
 * only reserved. */
void *qpn_table_owner(const struct qpn_table *t, uint32_t qpn);

/* Reserves a QPN for a surviving process. Calls come in the order of `place`, and before the first
 * qpn_table_add. Returns 0; -EINVAL: out of order, a duplicate or no QPN; -ENOMEM. */
int qpn_table_restore(struct qpn_table *t, uint32_t place, const struct qpn_record *record);
/* Ends the reservations of each process whose claimable[process] is false. */
void qpn_table_end_restore(struct qpn_table *t, const bool claimable[VNIC_BLOCKS]);

#endif
