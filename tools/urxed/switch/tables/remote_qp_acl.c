/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/tables/remote_qp_acl.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "urxed/switch/tables/dpdk_hash.h"

/* User of a process that has not attached again since the restart of the daemon. */
#define UNKNOWN_USER ((uid_t)-1)

/* A process that has registered a remote QP for one or more of its own QPs. */
struct remote_qp_claim {
	struct remote_qp_owner *owner;
	struct remote_qp_target *target;
	uint64_t order;
	uint32_t qps; /* number of these registrations */
	/*
	 * For each service: a packet of the target's host has arrived at a QP of the owner that has
	 * only one remote QP on that host, the target (remote_qp_acl_heard). Always true if the
	 * owner is always_heard.
	 */
	bool heard[REMOTE_QP_SERVICES];
	TAILQ_ENTRY(remote_qp_claim) link;
};
TAILQ_HEAD(remote_qp_claims, remote_qp_claim);

/* A remote QP that some process has registered. */
struct remote_qp_target {
	struct remote_qp_key key;
	struct remote_qp_claims claims; /* in the order of their first registrations */
	/* For each service: the earliest claim with `heard`; NULL = none. Saves most frames the
	 * walk along the claims. */
	struct remote_qp_claim *holder[REMOTE_QP_SERVICES];
	LIST_ENTRY(remote_qp_target) link; /* in `unused_targets` */
};

int remote_qp_acl_open(struct remote_qp_acl *t)
{
	int rc = hash_create("remote", REMOTE_QP_MAX, sizeof(struct remote_qp_key), &t->by_key);

	if (rc)
		return rc;
	/* calloc gives memory that the kernel provides only page by page, as entries are used. */
	t->all = calloc(REMOTE_QP_MAX, sizeof(*t->all));
	t->targets = calloc(REMOTE_QP_MAX, sizeof(*t->targets));
	t->by_local = calloc(LEASE_BLOCKS, sizeof(*t->by_local));
	t->absent = calloc(LEASE_BLOCKS, sizeof(*t->absent));
	if (!t->all || !t->targets || !t->by_local || !t->absent) {
		remote_qp_acl_close(t);
		return -ENOMEM;
	}
	t->n = t->n_targets = 0;
	t->order = 0;
	LIST_INIT(&t->unused);
	LIST_INIT(&t->unused_targets);
	return 0;
}

static void free_claims(struct remote_qp_target *target)
{
	struct remote_qp_claim *claim;

	while ((claim = TAILQ_FIRST(&target->claims))) {
		TAILQ_REMOVE(&target->claims, claim, link);
		free(claim);
	}
}

void remote_qp_acl_close(struct remote_qp_acl *t)
{
	uint32_t i;

	for (i = 0; t->targets && i < t->n_targets; i++)
		free_claims(&t->targets[i]);
	for (i = 0; t->by_local && i < LEASE_BLOCKS; i++)
		free(t->by_local[i]);
	hash_destroy(t->by_key);
	free(t->all);
	free(t->targets);
	free(t->by_local);
	free(t->absent);
	*t = (struct remote_qp_acl){0};
}

/* --- Targets and claims */

static struct remote_qp_target *find_target(const struct remote_qp_acl *t,
					    const struct remote_qp_key *key)
{
	int64_t i = hash_get(t->by_key, key);

	return i < 0 ? NULL : &t->targets[i];
}

static struct remote_qp_claim *find_claim(const struct remote_qp_target *target,
					  const struct remote_qp_owner *owner)
{
	struct remote_qp_claim *claim;

	TAILQ_FOREACH(claim, &target->claims, link)
	if (claim->owner == owner)
		return claim;
	return NULL;
}

/* Makes the target of a remote QP, without claims. Returns 0 or an error of hash_set. An unused
 * target exists, because there are no more targets than registrations. */
static int add_target(struct remote_qp_acl *t, const struct remote_qp_key *key,
		      struct remote_qp_target **target)
{
	struct remote_qp_target *unused = LIST_FIRST(&t->unused_targets);
	struct remote_qp_target *new = unused ? unused : &t->targets[t->n_targets];
	int rc = hash_set(t->by_key, key, (uint32_t)(new - t->targets));

	if (rc)
		return rc;
	if (unused)
		LIST_REMOVE(unused, link);
	else
		t->n_targets++;
	*new = (struct remote_qp_target){.key = *key};
	TAILQ_INIT(&new->claims);
	*target = new;
	return 0;
}

static void drop_target(struct remote_qp_acl *t, struct remote_qp_target *target)
{
	hash_remove(t->by_key, &target->key);
	LIST_INSERT_HEAD(&t->unused_targets, target, link);
}

static void choose_holders(struct remote_qp_target *target)
{
	struct remote_qp_claim *claim;
	int service;

	for (service = 0; service < REMOTE_QP_SERVICES; service++) {
		target->holder[service] = NULL;
		TAILQ_FOREACH(claim, &target->claims, link)
		{
			if (!claim->heard[service])
				continue;
			target->holder[service] = claim;
			break;
		}
	}
}

/* Marks the claim as heard for both services, because the switch may not see the remote host's
 * packets to the process. */
static void hear_claim(struct remote_qp_claim *claim)
{
	for (int service = 0; service < REMOTE_QP_SERVICES; service++)
		claim->heard[service] = true;
	choose_holders(claim->target);
}

/* Inserts the claim by the order of first registrations. Restored claims may come in any order, and
 * precede all new ones. */
static void insert_claim(struct remote_qp_target *target, struct remote_qp_claim *claim)
{
	struct remote_qp_claim *before = TAILQ_LAST(&target->claims, remote_qp_claims);

	while (before && before->order > claim->order)
		before = TAILQ_PREV(before, remote_qp_claims, link);
	if (before)
		TAILQ_INSERT_AFTER(&target->claims, before, claim, link);
	else
		TAILQ_INSERT_HEAD(&target->claims, claim, link);
}

/* Returns true if REMOTE_QP_CLAIMS_PER_USER processes of the owner's user have registered the
 * target. */
static bool is_crowded(const struct remote_qp_target *target, const struct remote_qp_owner *owner)
{
	const struct remote_qp_claim *claim;
	uint32_t n = 0;

	if (owner->user == UNKNOWN_USER)
		return false;
	TAILQ_FOREACH(claim, &target->claims, link)
	n += claim->owner->user == owner->user;
	return n >= REMOTE_QP_CLAIMS_PER_USER;
}

static int add_claim(struct remote_qp_target *target, struct remote_qp_owner *owner, uint64_t order,
		     struct remote_qp_claim **claim)
{
	if (is_crowded(target, owner))
		return -ENOSPC;
	*claim = calloc(1, sizeof(**claim));
	if (!*claim)
		return -ENOMEM;
	(*claim)->owner = owner;
	(*claim)->target = target;
	(*claim)->order = order;
	insert_claim(target, *claim);
	if (owner->always_heard)
		hear_claim(*claim);
	return 0;
}

/* Removes a registration of the claim. Frees the claim if it was its last one, and the target if
 * that was its last claim. */
static void release_claim(struct remote_qp_acl *t, struct remote_qp_claim *claim)
{
	struct remote_qp_target *target = claim->target;

	if (claim->qps && --claim->qps)
		return;
	TAILQ_REMOVE(&target->claims, claim, link);
	free(claim);
	if (TAILQ_EMPTY(&target->claims))
		drop_target(t, target);
	else
		choose_holders(target);
}

/* Finds or makes the owner's claim to a remote QP. The caller then adds a registration to the
 * claim, or releases the claim. Returns -ENOSPC if is_crowded, or -ENOMEM. */
static int get_claim(struct remote_qp_acl *t, struct remote_qp_owner *owner,
		     const struct remote_qp_key *key, uint64_t order,
		     struct remote_qp_claim **claim)
{
	struct remote_qp_target *target = find_target(t, key);
	int rc = target ? 0 : add_target(t, key, &target);

	if (rc)
		return rc;
	*claim = find_claim(target, owner);
	if (*claim)
		return 0;
	rc = add_claim(target, owner, order, claim);
	if (rc && TAILQ_EMPTY(&target->claims))
		drop_target(t, target);
	return rc;
}

/* --- Registrations by local QPN */

static struct remote_qp *first_remote(const struct remote_qp_acl *t, uint32_t local)
{
	const struct remote_qp_block *block = t->by_local[lease_block(local)];

	return block ? LIST_FIRST(&block->local[local % LEASE_QPNS]) : NULL;
}

static bool same_key(const struct remote_qp_key *a, const struct remote_qp_key *b)
{
	return a->qpn == b->qpn && !memcmp(a->gid, b->gid, sizeof(a->gid));
}

/* Returns the local QP's entry for that remote QP; NULL: none. Sets *n to the number of the local
 * QP's entries before that one, or of all its entries. */
static struct remote_qp *find_remote(const struct remote_qp_acl *t, uint32_t local,
				     const struct remote_qp_key *key, uint32_t *n)
{
	struct remote_qp *r;

	*n = 0;
	for (r = first_remote(t, local); r && !same_key(&r->key, key); r = LIST_NEXT(r, local_link))
		++*n;
	return r;
}

static int link_local(struct remote_qp_acl *t, struct remote_qp *r)
{
	struct remote_qp_block **block = &t->by_local[lease_block(r->local)];

	if (!*block)
		*block = calloc(1, sizeof(**block));
	if (!*block)
		return -ENOMEM;
	LIST_INSERT_HEAD(&(*block)->local[r->local % LEASE_QPNS], r, local_link);
	(*block)->n++;
	return 0;
}

static void unlink_local(struct remote_qp_acl *t, struct remote_qp *r)
{
	struct remote_qp_block **block = &t->by_local[lease_block(r->local)];

	LIST_REMOVE(r, local_link);
	if (--(*block)->n)
		return;
	free(*block);
	*block = NULL;
}

/* --- Adding and removing */

/* Returns a free entry: one that was released, else the next one never used, so that the table uses
 * no more memory than needed. NULL: the table is full. */
static struct remote_qp *allocate_remote(struct remote_qp_acl *t)
{
	struct remote_qp *r = LIST_FIRST(&t->unused);

	if (r)
		LIST_REMOVE(r, link);
	else if (t->n < REMOTE_QP_MAX)
		r = &t->all[t->n++];
	return r;
}

static void store_entry(const struct remote_qp_acl *t, const struct remote_qp *r)
{
	struct remote_qp_record record = {.key = r->key, .local = r->local};

	if (!t->store)
		return;
	if (r->owner) {
		record.process = r->owner->process;
		record.order = r->claim->order;
		for (int service = 0; service < REMOTE_QP_SERVICES; service++)
			record.heard |= (uint32_t)r->claim->heard[service] << service;
	}
	t->store(t->store_ctx, (uint32_t)(r - t->all), &record);
}

static void set_owner(struct remote_qp *r, struct remote_qp_owner *owner)
{
	r->owner = owner;
	LIST_INSERT_HEAD(&owner->list, r, link);
	owner->n++;
}

/* Makes the entry r, which is in no list, the registration of a remote QP by `owner`. On error,
 * which is one of get_claim, r becomes unused. */
static int insert_remote(struct remote_qp_acl *t, struct remote_qp *r,
			 struct remote_qp_owner *owner, uint32_t local,
			 const struct remote_qp_key *key, uint64_t order)
{
	struct remote_qp_claim *claim = NULL;
	int rc = get_claim(t, owner, key, order, &claim);

	*r = (struct remote_qp){.key = *key, .local = local, .claim = claim};
	if (!rc) {
		claim->qps++;
		rc = link_local(t, r);
		if (rc)
			release_claim(t, claim);
	}
	if (rc)
		LIST_INSERT_HEAD(&t->unused, r, link);
	else
		set_owner(r, owner);
	return rc;
}

static int add_remote_entry(struct remote_qp_acl *t, struct remote_qp_owner *owner, uint32_t local,
			    const struct remote_qp_key *key)
{
	struct remote_qp *r = owner->n < REMOTE_QP_PER_OWNER ? allocate_remote(t) : NULL;
	int rc = r ? insert_remote(t, r, owner, local, key, t->order + 1) : -ENOSPC;

	if (rc)
		return rc;
	t->order++;
	r->times = 1;
	store_entry(t, r);
	return 0;
}

int remote_qp_acl_add(struct remote_qp_acl *t, struct remote_qp_owner *owner, uint32_t local,
		      const struct remote_qp_key *key)
{
	uint32_t n;
	struct remote_qp *r = find_remote(t, local, key, &n);

	if (!r)
		return n < REMOTE_QP_PER_LOCAL ? add_remote_entry(t, owner, local, key) : -ENOSPC;
	if (r->owner != owner)
		return -EACCES;
	r->times++;
	return 0;
}

static void release_remote(struct remote_qp_acl *t, struct remote_qp *r)
{
	r->owner->n--;
	r->owner = NULL;
	LIST_REMOVE(r, link);
	unlink_local(t, r);
	release_claim(t, r->claim);
	r->claim = NULL;
	LIST_INSERT_HEAD(&t->unused, r, link);
	store_entry(t, r);
}

int remote_qp_acl_remove(struct remote_qp_acl *t, struct remote_qp_owner *owner, uint32_t local,
			 const struct remote_qp_key *key)
{
	uint32_t n;
	struct remote_qp *r = find_remote(t, local, key, &n);

	if (!r || r->owner != owner || !r->times)
		return -ENOENT;
	if (--r->times == 0)
		release_remote(t, r);
	return 0;
}

uint32_t remote_qp_acl_remove_some(struct remote_qp_acl *t, struct remote_qp_owner *owner,
				   uint32_t most)
{
	struct remote_qp *r;
	uint32_t n = 0;

	while (n < most && (r = LIST_FIRST(&owner->list))) {
		release_remote(t, r);
		n++;
	}
	return n;
}

void remote_qp_acl_remove_all(struct remote_qp_acl *t, struct remote_qp_owner *owner)
{
	(void)remote_qp_acl_remove_some(t, owner, UINT32_MAX);
}

/* --- Restart of the daemon */

int remote_qp_acl_restore(struct remote_qp_acl *t, uint32_t place,
			  const struct remote_qp_record *record)
{
	struct remote_qp_claim *claim;
	uint32_t n;
	int rc;

	if (place < t->n || place >= REMOTE_QP_MAX || !record->process ||
	    record->process >= LEASE_BLOCKS || record->local >= 1u << 24 ||
	    find_remote(t, record->local, &record->key, &n))
		return -EINVAL;
	for (; t->n < place; t->n++)
		LIST_INSERT_HEAD(&t->unused, &t->all[t->n], link);
	t->n++;
	if (record->order > t->order)
		t->order = record->order;
	t->absent[record->process].process = record->process;
	t->absent[record->process].user = UNKNOWN_USER;
	rc = insert_remote(t, &t->all[place], &t->absent[record->process], record->local,
			   &record->key, record->order);
	if (rc)
		return rc;
	claim = t->all[place].claim;
	for (int service = 0; service < REMOTE_QP_SERVICES; service++)
		claim->heard[service] |= record->heard >> service & 1;
	choose_holders(claim->target);
	return 0;
}

void remote_qp_acl_reclaim(struct remote_qp_acl *t, struct remote_qp_owner *owner)
{
	struct remote_qp_owner *absent = &t->absent[owner->process];
	struct remote_qp *r;

	while ((r = LIST_FIRST(&absent->list))) {
		LIST_REMOVE(r, link);
		r->claim->owner = owner;
		set_owner(r, owner);
	}
	absent->n = 0;
}

void remote_qp_acl_forget(struct remote_qp_acl *t, uint32_t process)
{
	remote_qp_acl_remove_all(t, &t->absent[process]);
}

void remote_qp_acl_end_restore(struct remote_qp_acl *t, const bool claimable[LEASE_BLOCKS])
{
	for (uint32_t place = 0; place < t->n; place++) {
		struct remote_qp *r = &t->all[place];
		const struct remote_qp_owner *owner = r->owner;

		if (!owner || r->times)
			continue;
		if (owner == &t->absent[owner->process] && claimable[owner->process])
			continue;
		release_remote(t, r);
	}
}

/* --- Checks of senders */

static bool has_claim(const struct remote_qp_acl *t, const struct remote_qp_owner *owner,
		      const struct remote_qp_key *to)
{
	const struct remote_qp_target *target = find_target(t, to);

	return target && find_claim(target, owner);
}

/* Whether this remote QP is registered for the owner's QP `local`. */
static bool is_connected(const struct remote_qp_acl *t, const struct remote_qp_owner *owner,
			 uint32_t local, const struct remote_qp_key *to)
{
	const struct remote_qp *r;

	for (r = first_remote(t, local); r; r = LIST_NEXT(r, local_link))
		if (r->owner == owner && same_key(&r->key, to))
			return true;
	return false;
}

/*
 * Whether the QP `to` of this host and some QP of the owner, whose address is `sip`, are registered
 * with each other.
 */
static bool is_pair(const struct remote_qp_acl *t, const struct remote_qp_owner *owner,
		    const uint8_t sip[16], const struct remote_qp_key *to)
{
	const struct remote_qp *r;

	for (r = first_remote(t, to->qpn); r; r = LIST_NEXT(r, local_link))
		if (!memcmp(r->key.gid, sip, sizeof(r->key.gid)) &&
		    is_connected(t, owner, r->key.qpn, to))
			return true;
	return false;
}

enum remote_qp_access remote_qp_acl_check_same_host(const struct remote_qp_acl *t,
						    const struct remote_qp_owner *owner,
						    const uint8_t sip[16],
						    const struct remote_qp_key *to)
{
	if (is_pair(t, owner, sip, to))
		return REMOTE_QP_GRANTED;
	return has_claim(t, owner, to) ? REMOTE_QP_NOT_MUTUAL : REMOTE_QP_UNREGISTERED;
}

enum remote_qp_access remote_qp_acl_check_other_host(const struct remote_qp_acl *t,
						     const struct remote_qp_owner *owner,
						     enum remote_qp_service service,
						     const struct remote_qp_key *to)
{
	const struct remote_qp_target *target = find_target(t, to);
	const struct remote_qp_claim *holder = target ? target->holder[service] : NULL;

	if (!target)
		return REMOTE_QP_UNREGISTERED;
	if (!holder && service == REMOTE_QP_UC)
		holder = TAILQ_FIRST(&target->claims);
	if (holder && holder->owner == owner)
		return REMOTE_QP_GRANTED;
	if (!find_claim(target, owner))
		return REMOTE_QP_UNREGISTERED;
	return holder ? REMOTE_QP_CONTESTED : REMOTE_QP_GRANTED;
}

bool remote_qp_acl_cnp_to_same_host(const struct remote_qp_acl *t,
				    const struct remote_qp_owner *owner, const uint8_t sip[16],
				    const struct remote_qp_key *to)
{
	return !first_remote(t, to->qpn) || is_pair(t, owner, sip, to);
}

bool remote_qp_acl_cnp_to_other_host(const struct remote_qp_acl *t,
				     const struct remote_qp_owner *owner,
				     const struct remote_qp_key *to)
{
	const struct remote_qp_target *target = find_target(t, to);
	bool held = false;
	int service;

	for (service = 0; target && service < REMOTE_QP_SERVICES; service++) {
		if (target->holder[service] && target->holder[service]->owner == owner)
			return true;
		held |= target->holder[service] != NULL;
	}
	return !held;
}

void remote_qp_acl_heard(struct remote_qp_acl *t, uint32_t local, const uint8_t sip[16],
			 enum remote_qp_service service)
{
	const struct remote_qp *r, *sender = NULL;

	for (r = first_remote(t, local); r; r = LIST_NEXT(r, local_link)) {
		if (memcmp(r->key.gid, sip, sizeof(r->key.gid)))
			continue;
		/* The QP has two remote QPs on that host, and the packet does not tell which one
		 * sent it. */
		if (sender)
			return;
		sender = r;
	}
	if (!sender || sender->claim->heard[service])
		return;
	sender->claim->heard[service] = true;
	choose_holders(sender->claim->target);
	store_entry(t, sender);
}

void remote_qp_acl_hear_always(struct remote_qp_acl *t, struct remote_qp_owner *owner)
{
	struct remote_qp *r;

	if (owner->always_heard)
		return;
	owner->always_heard = true;
	LIST_FOREACH(r, &owner->list, link)
	{
		hear_claim(r->claim);
		store_entry(t, r);
	}
}
