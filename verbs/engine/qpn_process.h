/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QPNs that an HCA has chosen, and the processes of this host that have them. Such a QPN may be
 * outside of the blocks of its process, so VNIC_BLOCK() does not tell the process. For tx.c, and
 * for daemon/introduction.c, which drops old QPNs.
 */
#ifndef URXE_VERBS_ENGINE_QPN_PROCESS_H
#define URXE_VERBS_ENGINE_QPN_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct qpn_process {
	uint32_t qpn;     /* 0: free */
	uint32_t process; /* number of the process: VNIC_BLOCK() of its first leased QPN */
};

struct qpn_processes {
	struct qpn_process *entries; /* a hash table with linear probing */
	uint32_t mask;
	uint32_t n;
};

/* Sets the process of the QPN, and replaces an earlier entry. No function removes an entry: to
 * forget a QPN, tx.c sets its process to VNIC_BLOCK(qpn). With adapter.lock. 0 or -ENOMEM. */
int qpn_process_set(struct qpn_processes *processes, uint32_t qpn, uint32_t process);
void qpn_processes_free(struct qpn_processes *processes);

/* Whether the table has no room for another QPN, so that it would grow. */
static inline bool qpn_processes_full(const struct qpn_processes *processes)
{
	return !processes->entries || 2 * (processes->n + 1) > processes->mask + 1;
}

/* The entry of the QPN, or the free entry where it would be; `entries` is not NULL. */
static inline struct qpn_process *qpn_process_entry(const struct qpn_processes *processes,
						    uint32_t qpn)
{
	uint32_t at = qpn * 0x9e3779b1u >> 8 & processes->mask;

	while (processes->entries[at].qpn && processes->entries[at].qpn != qpn)
		at = (at + 1) & processes->mask;
	return &processes->entries[at];
}

/* True: *process has the QPN. False: no entry, so VNIC_BLOCK(qpn) is the process; *process is
 * undefined. */
static inline bool qpn_process_find(const struct qpn_processes *processes, uint32_t qpn,
				    uint32_t *process)
{
	const struct qpn_process *entry;

	if (__builtin_expect(!processes->n, 1))
		return false;
	entry = qpn_process_entry(processes, qpn);
	*process = entry->process;
	return entry->qpn != 0;
}

#endif
