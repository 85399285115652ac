/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/remote_qp_acl.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "urxed/switch/dpdk_hash.h"

int remote_qp_acl_open(struct remote_qp_acl *t)
{
	int rc = hash_create("remote", REMOTE_QP_MAX, sizeof(struct remote_qp_key), &t->by_key);

	if (rc)
		return rc;
	t->all = calloc(REMOTE_QP_MAX, sizeof(*t->all));
	t->absent = calloc(LEASE_BLOCKS, sizeof(*t->absent));
	if (!t->all || !t->absent) {
		remote_qp_acl_close(t);
		return -ENOMEM;
	}
	t->n = 0;
	LIST_INIT(&t->unused);
	return 0;
}

void remote_qp_acl_close(struct remote_qp_acl *t)
{
	hash_destroy(t->by_key);
	free(t->all);
	free(t->absent);
	*t = (struct remote_qp_acl){0};
}

static struct remote_qp *find_remote(const struct remote_qp_acl *t, const struct remote_qp_key *key)
{
	int64_t i = hash_get(t->by_key, key);

	return i < 0 ? NULL : &t->all[i];
}

/*
 * Returns a free entry: a released one, or the next one never used. So memory is touched only as
 * needed.
 */
static struct remote_qp *allocate_remote(struct remote_qp_acl *t)
{
	struct remote_qp *r = LIST_FIRST(&t->unused);

	if (r)
		LIST_REMOVE(r, link);
	else if (t->n < REMOTE_QP_MAX)
		r = &t->all[t->n++];
	return r;
}

static uint32_t place_of(const struct remote_qp_acl *t, const struct remote_qp *r)
{
	return (uint32_t)(r - t->all);
}

static void store_owner(const struct remote_qp_acl *t, const struct remote_qp *r)
{
	if (t->store)
		t->store(t->store_ctx, place_of(t, r), &r->key, r->owner ? r->owner->process : 0);
}

static void set_owner(struct remote_qp *r, struct remote_qp_owner *owner)
{
	r->owner = owner;
	LIST_INSERT_HEAD(&owner->list, r, link);
	owner->n++;
}

/* r is in no list. On error r becomes unused. */
static int insert_remote(struct remote_qp_acl *t, struct remote_qp *r,
			 struct remote_qp_owner *owner, const struct remote_qp_key *key)
{
	int rc = hash_set(t->by_key, key, place_of(t, r));

	if (rc) {
		LIST_INSERT_HEAD(&t->unused, r, link);
		return rc;
	}
	r->key = *key;
	r->times = 0;
	set_owner(r, owner);
	return 0;
}

static int add_remote_entry(struct remote_qp_acl *t, struct remote_qp_owner *owner,
			    const struct remote_qp_key *key)
{
	struct remote_qp *r = owner->n < REMOTE_QP_PER_OWNER ? allocate_remote(t) : NULL;
	int rc = r ? insert_remote(t, r, owner, key) : -ENOSPC;

	if (rc)
		return rc;
	r->times = 1;
	store_owner(t, r);
	return 0;
}

int remote_qp_acl_add(struct remote_qp_acl *t, struct remote_qp_owner *owner,
		      const struct remote_qp_key *key)
{
	struct remote_qp *r = find_remote(t, key);

	if (!r)
		return add_remote_entry(t, owner, key);
	if (r->owner != owner)
		return -EADDRINUSE;
	r->times++;
	return 0;
}

static void release_remote(struct remote_qp_acl *t, struct remote_qp *r)
{
	hash_remove(t->by_key, &r->key);
	r->owner->n--;
	r->owner = NULL;
	LIST_REMOVE(r, link);
	LIST_INSERT_HEAD(&t->unused, r, link);
	store_owner(t, r);
}

int remote_qp_acl_remove(struct remote_qp_acl *t, struct remote_qp_owner *owner,
			 const struct remote_qp_key *key)
{
	struct remote_qp *r = find_remote(t, key);

	if (!r || r->owner != owner || !r->times)
		return -ENOENT;
	if (--r->times == 0)
		release_remote(t, r);
	return 0;
}

void remote_qp_acl_remove_all(struct remote_qp_acl *t, struct remote_qp_owner *owner)
{
	struct remote_qp *r;

	while ((r = LIST_FIRST(&owner->list)))
		release_remote(t, r);
}

int remote_qp_acl_restore(struct remote_qp_acl *t, uint32_t place, const struct remote_qp_key *key,
			  uint32_t process)
{
	if (place < t->n || place >= REMOTE_QP_MAX || process >= LEASE_BLOCKS ||
	    find_remote(t, key))
		return -EINVAL;
	for (; t->n < place; t->n++)
		LIST_INSERT_HEAD(&t->unused, &t->all[t->n], link);
	t->n++;
	t->absent[process].process = process;
	return insert_remote(t, &t->all[place], &t->absent[process], key);
}

void remote_qp_acl_reclaim(struct remote_qp_acl *t, struct remote_qp_owner *owner)
{
	struct remote_qp_owner *absent = &t->absent[owner->process];
	struct remote_qp *r;

	while ((r = LIST_FIRST(&absent->list))) {
		LIST_REMOVE(r, link);
		set_owner(r, owner);
	}
	absent->n = 0;
}

void remote_qp_acl_forget(struct remote_qp_acl *t, uint32_t process)
{
	remote_qp_acl_remove_all(t, &t->absent[process]);
}

void remote_qp_acl_end_restore(struct remote_qp_acl *t)
{
	uint32_t place;

	for (place = 0; place < t->n; place++)
		if (t->all[place].owner && !t->all[place].times)
			release_remote(t, &t->all[place]);
}

struct remote_qp_owner *remote_qp_acl_find(const struct remote_qp_acl *t,
					   const struct remote_qp_key *key)
{
	const struct remote_qp *r = find_remote(t, key);

	return r ? r->owner : NULL;
}
