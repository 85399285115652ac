/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_ah.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca_device.h"

/* The hop limit that 0 stands for in struct urxe_path. */
#define DEFAULT_HOP_LIMIT 64

int hca_ah_attr(const struct hca *hca, const struct urxe_path *path, struct ibv_ah_attr *attr)
{
	int sgid_index = hca_gid_index(hca, path->sgid_index);

	if (sgid_index < 0)
		return -EINVAL;
	*attr = (struct ibv_ah_attr){
		.grh = {.flow_label = path->flow_label,
			.sgid_index = (uint8_t)sgid_index,
			.hop_limit = path->hop_limit ? path->hop_limit : DEFAULT_HOP_LIMIT,
			.traffic_class = path->traffic_class},
		.sl = path->sl,
		.is_global = 1,
		.port_num = hca->port,
	};
	memcpy(attr->grh.dgid.raw, path->dgid.raw, sizeof(attr->grh.dgid.raw));
	return 0;
}

void hca_ahs_init(struct hca *hca)
{
	TAILQ_INIT(&hca->ahs.by_age);
}

bool hca_is_same_path(const struct urxe_path *a, const struct urxe_path *b)
{
	return !memcmp(&a->dgid, &b->dgid, sizeof(a->dgid)) &&
	       !memcmp(a->dmac, b->dmac, sizeof(a->dmac)) && a->sgid_index == b->sgid_index &&
	       a->traffic_class == b->traffic_class && a->hop_limit == b->hop_limit &&
	       a->sl == b->sl && a->flow_label == b->flow_label;
}

static struct hca_ah_bucket *bucket_of(struct hca *hca, const struct urxe_path *path)
{
	uint64_t low, high;

	memcpy(&low, path->dgid.raw, sizeof(low));
	memcpy(&high, path->dgid.raw + sizeof(low), sizeof(high));
	low = (low ^ high ^ path->sgid_index) * UINT64_C(0x9e3779b97f4a7c15);
	return &hca->ahs.buckets[low >> 56];
}

static void destroy_ibv_ah(struct hca_destruction *destruction)
{
	const struct hca_ah *ah = HCA_OBJECT_OF(destruction, struct hca_ah);

	if (ah->ah)
		ah->hca->verbs->destroy_ah(ah->ah);
}

static void free_ah(struct hca_destruction *destruction)
{
	free(HCA_OBJECT_OF(destruction, struct hca_ah));
}

static void free_old_ah(struct hca_destruction *destruction)
{
	struct hca_ah *ah = HCA_OBJECT_OF(destruction, struct hca_ah);

	hca_pd_put(ah->pd);
	free(ah);
}

/* Destroys a handle that is in no list. `finish`: free_ah or free_old_ah. */
static void destroy_ah(struct hca_ah *ah, void (*finish)(struct hca_destruction *))
{
	ah->destruction = (struct hca_destruction){.call = destroy_ibv_ah, .finish = finish};
	hca_destroy_object(ah->hca, &ah->destruction);
}

static void remove_ah(struct hca *hca, struct hca_ah *ah)
{
	LIST_REMOVE(ah, bucket_link);
	TAILQ_REMOVE(&hca->ahs.by_age, ah, age_link);
	hca->ahs.n--;
}

/* Destroys a handle of the cache. Until the handle is destroyed, it counts among the holds of its
 * domain, so that no other thread deallocates the domain before. */
static void destroy_old_ah(struct hca *hca, struct hca_ah *ah)
{
	remove_ah(hca, ah);
	ah->pd->holds++;
	destroy_ah(ah, free_old_ah);
}

/* Destroys handles until the cache has fewer than HCA_AHS_MAX. Handles of outstanding requests
 * stay, so the cache may still have more. */
static void make_ah_room(struct hca *hca)
{
	struct hca_ah *ah = TAILQ_FIRST(&hca->ahs.by_age);

	while (ah && hca->ahs.n >= HCA_AHS_MAX) {
		struct hca_ah *next = TAILQ_NEXT(ah, age_link);

		if (!ah->requests)
			destroy_old_ah(hca, ah);
		ah = next;
	}
}

static void add_ah(struct hca *hca, struct hca_ah *ah)
{
	LIST_INSERT_HEAD(bucket_of(hca, &ah->path), ah, bucket_link);
	TAILQ_INSERT_TAIL(&hca->ahs.by_age, ah, age_link);
	hca->ahs.n++;
}

static struct hca_ah *alloc_ah(struct hca_pd *pd, const struct urxe_path *path)
{
	struct hca_ah *ah = calloc(1, sizeof(*ah));

	if (!ah)
		return NULL;
	ah->hca = pd->hca;
	ah->pd = pd;
	ah->path = *path;
	ah->sgid_index = hca_gid_index(pd->hca, path->sgid_index);
	return ah;
}

static int make_ah(struct hca *hca, struct hca_pd *pd, const struct urxe_path *path,
		   struct hca_ah **out)
{
	struct ibv_ah_attr attr;
	struct hca_ah *ah;
	int cancel, rc = hca_ah_attr(hca, path, &attr);

	if (rc)
		return rc;
	make_ah_room(hca);
	ah = alloc_ah(pd, path);
	if (!ah)
		return -ENOMEM;
	/* A thread that has adapter.lock must not end in a write(2) or ioctl(2) of the provider. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ah->ah = hca->verbs->create_ah(pd->pd, &attr);
	pthread_setcancelstate(cancel, NULL);
	if (!ah->ah) {
		free(ah);
		return -EINVAL;
	}
	add_ah(hca, ah);
	*out = ah;
	return 0;
}

static struct hca_ah *find_ah(struct hca *hca, const struct hca_pd *pd,
			      const struct urxe_path *path)
{
	const int sgid_index = hca_gid_index(hca, path->sgid_index);
	struct hca_ah *ah;

	/* If the source GID has moved within the HCA's table, older handles have its old index. */
	LIST_FOREACH(ah, bucket_of(hca, path), bucket_link)
	if (!ah->replaced && ah->pd == pd && ah->sgid_index == sgid_index &&
	    hca_is_same_path(&ah->path, path))
		break;
	return ah;
}

bool hca_has_ah(struct hca *hca, uint32_t number, const struct urxe_path *path)
{
	const struct hca_pd *pd = hca_pd_find(hca, number);

	return pd && find_ah(hca, pd, path);
}

int hca_ah_get(struct hca *hca, struct hca_pd *pd, const struct urxe_path *path, struct hca_ah **ah)
{
	int rc = 0;

	*ah = find_ah(hca, pd, path);
	if (!*ah)
		rc = make_ah(hca, pd, path, ah);
	if (!rc)
		(*ah)->requests++;
	return rc;
}

void hca_ah_put(struct hca *hca, struct hca_ah *ah)
{
	if (!--ah->requests && ah->replaced) {
		destroy_old_ah(hca, ah);
		return;
	}
	TAILQ_REMOVE(&hca->ahs.by_age, ah, age_link);
	TAILQ_INSERT_TAIL(&hca->ahs.by_age, ah, age_link);
}

void hca_ahs_forget_pd(struct hca *hca, const struct hca_pd *pd)
{
	struct hca_ah *ah = TAILQ_FIRST(&hca->ahs.by_age);

	while (ah) {
		struct hca_ah *next = TAILQ_NEXT(ah, age_link);

		if (ah->pd == pd) {
			remove_ah(hca, ah);
			destroy_ah(ah, free_ah);
		}
		ah = next;
	}
}

/* --- Creation outside the lock. */

struct hca_ah_call {
	struct hca *hca;
	struct hca_ah *ah;
	struct ibv_ah_attr attr;
	int rc; /* of hca_ah_run() */
};

static struct hca_ah_call *make_call(struct hca *hca, struct hca_pd *pd,
				     const struct urxe_path *path, const struct ibv_ah_attr *attr)
{
	struct hca_ah_call *call = malloc(sizeof(*call));
	struct hca_ah *ah = alloc_ah(pd, path);

	if (!call || !ah) {
		free(call);
		free(ah);
		return NULL;
	}
	*call = (struct hca_ah_call){.hca = hca, .ah = ah, .attr = *attr};
	pd->holds++;
	hca_hold(hca);
	return call;
}

/*
 * Whether the HCA has a handle of the path whose MAC cannot be outdated. A path with a next hop
 * gives the MAC. For another path the HCA has looked up the MAC, which may have changed since.
 */
static bool has_lasting_ah(struct hca *hca, const struct hca_pd *pd, const struct urxe_path *path)
{
	return urxe_path_has_next_hop(path) && find_ah(hca, pd, path);
}

struct hca_ah_call *hca_ah_begin(struct hca *hca, uint32_t number, const struct urxe_path *path,
				 bool anew)
{
	struct hca_pd *pd = hca_pd_find(hca, number);
	struct ibv_ah_attr attr;

	if (!pd || (!anew && has_lasting_ah(hca, pd, path)) || hca_ah_attr(hca, path, &attr))
		return NULL;
	return make_call(hca, pd, path, &attr);
}

void hca_ah_run(struct hca_ah_call *call)
{
	call->ah->ah = call->hca->verbs->create_ah(call->ah->pd->pd, &call->attr);
	if (!call->ah->ah)
		call->rc = hca_verbs_null_error();
}

/* Whether the new handle is to be used: not if the HCA has refused it or was detached, or has a
 * lasting handle of the path. */
static bool keeps_ah(struct hca *hca, const struct hca_ah *ah)
{
	return ah->ah && hca->dev && !has_lasting_ah(hca, ah->pd, &ah->path);
}

/* Destroys the path's old handle, or marks it if outstanding requests still use it. */
static void replace_ah(struct hca *hca, const struct hca_ah *with)
{
	struct hca_ah *old = find_ah(hca, with->pd, &with->path);

	if (old && old->requests)
		old->replaced = true;
	else if (old)
		destroy_old_ah(hca, old);
}

int hca_ah_end(struct hca_ah_call *call)
{
	const int rc = call->rc;
	struct hca *hca = call->hca;
	struct hca_ah *ah = call->ah;
	struct hca_pd *pd = ah->pd;

	if (keeps_ah(hca, ah)) {
		replace_ah(hca, ah);
		make_ah_room(hca);
		add_ah(hca, ah);
	} else {
		destroy_ah(ah, free_ah);
	}
	hca_pd_put(pd);
	free(call);
	return rc;
}
