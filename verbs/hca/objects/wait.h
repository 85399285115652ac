/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wait for a command of the HCA, which may take milliseconds: if the owner permits it
 * (hca_free_lock), the calling thread has released the lock meanwhile, so other threads post and
 * poll.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_WAIT_H
#define URXE_VERBS_HCA_OBJECTS_WAIT_H

#include <stdbool.h>

struct hca;

struct hca_wait {
	bool unlocked;
	bool collects; /* hca_collect_ends() of this thread */
};

/*
 * With the lock. Until hca_end_wait() the caller uses only the provider, and objects that no other
 * thread frees. errno may change in hca_end_wait().
 */
struct hca_wait hca_begin_wait(struct hca *hca);
void hca_end_wait(struct hca *hca, const struct hca_wait *wait);

#endif
