/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Brackets a command of the HCA, which may take milliseconds. If the owner permits it
 * (hca_allow_unlock), hca_begin_wait() releases the lock, and hca_end_wait() takes it again.
 * Meanwhile other threads can post and poll.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_WAIT_H
#define URXE_VERBS_HCA_OBJECTS_WAIT_H

#include <stdbool.h>

struct hca;

struct hca_wait {
	bool unlocked; /* hca_begin_wait() has released the lock */
	bool defers;   /* hca->defers at hca_begin_wait(), which hca_end_wait() restores; other
			  threads use hca->defers meanwhile */
};

/*
 * The caller holds the lock. Until hca_end_wait() it calls only the provider, and uses only objects
 * that no other thread frees. Returns what the caller passes to hca_end_wait().
 */
struct hca_wait hca_begin_wait(struct hca *hca);
/* May change errno, so the caller reads errno before. */
void hca_end_wait(struct hca *hca, const struct hca_wait *wait);

#endif
