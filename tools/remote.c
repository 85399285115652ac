/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "remote.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "dpdk_hash.h"

int remote_open(struct remote_table *t)
{
	int rc = hash_create("remote", REMOTE_MAX, sizeof(struct remote_key), &t->by_key);

	if (rc)
		return rc;
	t->all = calloc(REMOTE_MAX, sizeof(*t->all));
	if (!t->all) {
		remote_close(t);
		return -ENOMEM;
	}
	t->n = 0;
	LIST_INIT(&t->unused);
	return 0;
}

void remote_close(struct remote_table *t)
{
	hash_destroy(t->by_key);
	free(t->all);
	*t = (struct remote_table){0};
}

static struct remote *lookup(const struct remote_table *t, const struct remote_key *key)
{
	int64_t i = hash_get(t->by_key, key);

	return i < 0 ? NULL : &t->all[i];
}

/* One that was in use before, or the next that never was: memory is touched as it is needed. */
static struct remote *claim(struct remote_table *t)
{
	struct remote *r = LIST_FIRST(&t->unused);

	if (r)
		LIST_REMOVE(r, link);
	else if (t->n < REMOTE_MAX)
		r = &t->all[t->n++];
	return r;
}

static int add(struct remote_table *t, struct remote_owner *owner, const struct remote_key *key)
{
	struct remote *r = owner->n < REMOTE_PER_OWNER ? claim(t) : NULL;
	int rc;

	if (!r)
		return -ENOSPC;
	rc = hash_set(t->by_key, key, (uint32_t)(r - t->all));
	if (rc) {
		LIST_INSERT_HEAD(&t->unused, r, link);
		return rc;
	}
	r->key = *key;
	r->times = 1;
	r->owner = owner;
	LIST_INSERT_HEAD(&owner->list, r, link);
	owner->n++;
	return 0;
}

int remote_take(struct remote_table *t, struct remote_owner *owner, const struct remote_key *key)
{
	struct remote *r = lookup(t, key);

	if (!r)
		return add(t, owner, key);
	if (r->owner != owner)
		return -EADDRINUSE;
	r->times++;
	return 0;
}

static void release(struct remote_table *t, struct remote *r)
{
	hash_remove(t->by_key, &r->key);
	r->owner->n--;
	LIST_REMOVE(r, link);
	LIST_INSERT_HEAD(&t->unused, r, link);
}

int remote_put(struct remote_table *t, struct remote_owner *owner, const struct remote_key *key)
{
	struct remote *r = lookup(t, key);

	if (!r || r->owner != owner)
		return -ENOENT;
	if (--r->times == 0)
		release(t, r);
	return 0;
}

void remote_put_all(struct remote_table *t, struct remote_owner *owner)
{
	struct remote *r;

	while ((r = LIST_FIRST(&owner->list)))
		release(t, r);
}

struct remote_owner *remote_find(const struct remote_table *t, const struct remote_key *key)
{
	const struct remote *r = lookup(t, key);

	return r ? r->owner : NULL;
}
