/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Destroys an object of the HCA in two steps: a call of the provider, which may take long, then the
 * release of the objects and memory that the object used. While hca->defers, both steps wait for
 * hca_destroy_deferred(), which runs the first without the lock.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_DESTRUCTION_H
#define URXE_VERBS_HCA_OBJECTS_DESTRUCTION_H

#include <sys/queue.h>

struct hca;

struct hca_destruction {
	/* Calls the provider; with or without the lock. */
	void (*call)(struct hca_destruction *destruction);
	/* With the lock, or in hca_destroy_rest(); may destroy further objects. */
	void (*finish)(struct hca_destruction *destruction);
	STAILQ_ENTRY(hca_destruction) link;
};
STAILQ_HEAD(hca_destruction_list, hca_destruction);

/* With the lock: runs both steps now, or, if hca->defers, adds `destruction` to hca->deferred. */
void hca_destroy_object(struct hca *hca, struct hca_destruction *destruction);
/* Without the lock, for an HCA that no other thread uses any more: runs both steps for all of
 * hca->deferred. */
void hca_destroy_rest(struct hca *hca);

/* The object that contains the member `destruction`. */
#define HCA_OBJECT_OF(member, type) ((type *)((char *)(member)-offsetof(type, destruction)))

#endif
