/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address handles of the HCA, and address vectors of connections. The engine's requests carry their
 * path. A request makes an address handle if there is none for its path (hca_ah_begin() may have
 * made one before), and later requests use that handle again.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_AH_H
#define URXE_VERBS_HCA_OBJECTS_HCA_AH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/types.h>

#include "destruction.h"

struct hca;
struct hca_pd;
struct ibv_ah;
struct ibv_ah_attr;

/* If the cache has so many handles, the creation of a new one first destroys handles without
 * outstanding requests, the least recently used first, until the cache has fewer. */
#define HCA_AHS_MAX     512
#define HCA_AHS_BUCKETS 256

struct hca_ah {
	struct hca *hca;
	struct ibv_ah *ah;
	struct hca_pd *pd;
	struct urxe_path path;
	int sgid_index;    /* in the HCA's GID table */
	uint32_t requests; /* number of outstanding requests that use the handle */
	/* hca_ah_end has made a newer handle for the PD and `path`: new requests use that one, and
	 * hca_ah_put of the last request destroys this one. */
	bool replaced;
	LIST_ENTRY(hca_ah) bucket_link;
	TAILQ_ENTRY(hca_ah) age_link;
	struct hca_destruction destruction;
};
LIST_HEAD(hca_ah_bucket, hca_ah);
TAILQ_HEAD(hca_ah_age, hca_ah);

struct hca_ah_cache {
	struct hca_ah_bucket buckets[HCA_AHS_BUCKETS];
	struct hca_ah_age by_age; /* the least recently used first */
	uint32_t n;               /* handles, with and without requests */
};

/* Initialises the empty hca->ahs. */
void hca_ahs_init(struct hca *hca);
/*
 * Finds or creates the handle of the path, and counts one request that uses it. Call hca_ah_put()
 * when the request has completed. 0 or a negative errno value.
 */
int hca_ah_get(struct hca *hca, struct hca_pd *pd, const struct urxe_path *path,
	       struct hca_ah **ah);
void hca_ah_put(struct hca *hca, struct hca_ah *ah);
/* Destroys all handles of the domain, which is about to be deallocated and has no queue pair. */
void hca_ahs_forget_pd(struct hca *hca, const struct hca_pd *pd);

/* Fills *attr, libibverbs' address vector of the path. 0, or -EINVAL: the HCA does not have the
 * path's source GID. */
int hca_ah_attr(const struct hca *hca, const struct urxe_path *path, struct ibv_ah_attr *attr);

#endif
