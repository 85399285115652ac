/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Destroys an object of the HCA in two steps: a call of the provider, which may take long, then the
 * release of the objects and memory that the object used. While the owner collects ends
 * (hca_collect_ends), both steps wait for hca_end_collected(), which runs the first without the
 * lock.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_END_H
#define URXE_VERBS_HCA_OBJECTS_END_H

#include <sys/queue.h>

struct hca;

struct hca_end {
	void (*call)(struct hca_end *end);   /* calls the provider; with or without the lock */
	void (*finish)(struct hca_end *end); /* with the lock, or in hca_end_rest(); may end further
						objects */
	STAILQ_ENTRY(hca_end) link;
};
STAILQ_HEAD(hca_end_list, hca_end);

/* With the lock: runs both steps now, or, while the owner collects ends, adds `end` to
 * hca->ends. */
void hca_end(struct hca *hca, struct hca_end *end);
/* Without the lock, for an HCA that no other thread uses any more: runs both steps for all of
 * hca->ends. */
void hca_end_rest(struct hca *hca);

/* The object that contains the member `end`. */
#define HCA_END_OF(end, type) ((type *)((char *)(end)-offsetof(type, end)))

#endif
