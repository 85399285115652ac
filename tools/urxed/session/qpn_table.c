/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/qpn_table.h"

#include <errno.h>
#include <stdlib.h>

#include <rxe/packet.h>

#include "urxed/switch/tables/dpdk_hash.h"

static int open_table(struct qpn_table *t)
{
	int rc;

	if (t->by_qpn)
		return 0;
	t->all = calloc(QPN_TABLE_MAX, sizeof(*t->all));
	if (!t->all)
		return -ENOMEM;
	rc = hash_create("urxed-qpns", QPN_TABLE_MAX, sizeof(uint32_t), &t->by_qpn);
	if (rc) {
		free(t->all);
		t->all = NULL;
	}
	return rc;
}

void qpn_table_close(struct qpn_table *t)
{
	hash_destroy(t->by_qpn);
	free(t->all);
	t->by_qpn = NULL;
	t->all = NULL;
}

/* Whether processes may have the QPN: QP0 and QP1 are the host's, and 0xffffff is for multicast
 * packets. */
static bool is_qpn(uint32_t qpn)
{
	return qpn > URXE_QPN_GSI && qpn < URXE_QPN_MULTICAST;
}

static struct qpn_entry *find_qpn_entry(const struct qpn_table *t, uint32_t qpn)
{
	int64_t place = t->by_qpn ? hash_get(t->by_qpn, &qpn) : -1;

	return place < 0 ? NULL : &t->all[place];
}

static void store_entry(const struct qpn_table *t, const struct qpn_entry *e)
{
	const struct qpn_record record = {.qpn = e->qpn, .process = e->process};

	if (t->store)
		t->store(t->store_ctx, (uint32_t)(e - t->all), &record);
}

/* --- Lists */

static void link_entry(struct qpn_holder *holder, struct qpn_entry *e)
{
	e->holder = holder;
	LIST_INSERT_HEAD(&holder->list, e, link);
	holder->n++;
}

static void unlink_entry(struct qpn_entry *e)
{
	LIST_REMOVE(e, link);
	e->holder->n--;
}

/*
 * Returns an unused entry: one that was in use before, or else a new one. NULL: the table is full.
 */
static struct qpn_entry *take_unused(struct qpn_table *t)
{
	struct qpn_entry *e = LIST_FIRST(&t->unused);

	if (e)
		LIST_REMOVE(e, link);
	else if (t->n < QPN_TABLE_MAX)
		e = &t->all[t->n++];
	return e;
}

static void put_unused(struct qpn_table *t, struct qpn_entry *e)
{
	*e = (struct qpn_entry){0};
	LIST_INSERT_HEAD(&t->unused, e, link);
}

/* --- Entries */

/* Gives an unused entry to a QPN, and counts the entry in the QPN's block. Returns 0 or an error of
 * hash_set. */
static int fill_entry(struct qpn_table *t, struct qpn_entry *e, uint32_t qpn, uint32_t process)
{
	int rc = hash_set(t->by_qpn, &qpn, (uint32_t)(e - t->all));

	if (rc)
		return rc;
	*e = (struct qpn_entry){.qpn = qpn, .process = process};
	t->in_block[VNIC_BLOCK(qpn)]++;
	return 0;
}

static void set_flags(struct qpn_table *t, struct qpn_entry *e, uint32_t flags)
{
	uint16_t *uplink = &t->uplink_in_block[VNIC_BLOCK(e->qpn)];

	*uplink =
		(uint16_t)(*uplink + !!(flags & VNIC_QPN_UPLINK) - !!(e->flags & VNIC_QPN_UPLINK));
	e->flags = flags;
}

static void free_entry(struct qpn_table *t, struct qpn_entry *e)
{
	set_flags(t, e, 0);
	hash_remove(t->by_qpn, &e->qpn);
	t->in_block[VNIC_BLOCK(e->qpn)]--;
	if (e->holder)
		unlink_entry(e);
	put_unused(t, e);
	store_entry(t, e);
}

static int add_new(struct qpn_table *t, struct qpn_holder *holder, uint32_t qpn, uint32_t flags)
{
	struct qpn_entry *e = holder->n < QPN_TABLE_PER_OWNER ? take_unused(t) : NULL;
	int rc = e ? fill_entry(t, e, qpn, holder->process) : -ENOSPC;

	if (rc) {
		if (e)
			put_unused(t, e);
		return rc;
	}
	set_flags(t, e, flags);
	e->times = 1;
	link_entry(holder, e);
	store_entry(t, e);
	return 0;
}

int qpn_table_add(struct qpn_table *t, struct qpn_holder *holder, uint32_t qpn, uint32_t flags)
{
	struct qpn_entry *e;
	int rc;

	if (!is_qpn(qpn))
		return -EINVAL;
	rc = open_table(t);
	if (rc)
		return rc;
	e = find_qpn_entry(t, qpn);
	if (!e)
		return add_new(t, holder, qpn, flags);
	if (e->holder ? e->holder != holder : e->process != holder->process)
		return -EEXIST;
	if (!e->holder)
		link_entry(holder, e);
	set_flags(t, e, flags);
	e->times++;
	return 0;
}

int qpn_table_set(struct qpn_table *t, struct qpn_holder *holder, uint32_t qpn, uint32_t flags)
{
	struct qpn_entry *e = find_qpn_entry(t, qpn);

	if (!e || e->holder != holder)
		return -ENOENT;
	set_flags(t, e, flags);
	return 0;
}

int qpn_table_remove(struct qpn_table *t, struct qpn_holder *holder, uint32_t qpn)
{
	struct qpn_entry *e = find_qpn_entry(t, qpn);

	if (!e || e->holder != holder)
		return -ENOENT;
	if (--e->times)
		return 0;
	free_entry(t, e);
	return 0;
}

uint32_t qpn_table_remove_some(struct qpn_table *t, struct qpn_holder *holder, uint32_t most)
{
	uint32_t n = 0;

	for (; n < most && !LIST_EMPTY(&holder->list); n++)
		free_entry(t, LIST_FIRST(&holder->list));
	return n;
}

const struct qpn_entry *qpn_table_find(const struct qpn_table *t, uint32_t qpn)
{
	const struct qpn_entry *e = find_qpn_entry(t, qpn);

	return e && e->holder ? e : NULL;
}

bool qpn_table_needs_uplink(const struct qpn_table *t, uint32_t block)
{
	return t->uplink_in_block[block];
}

void *qpn_table_owner(const struct qpn_table *t, uint32_t qpn)
{
	const struct qpn_entry *e = qpn_table_find(t, qpn);

	return e ? e->holder->owner : NULL;
}

/* --- After a restart */

int qpn_table_restore(struct qpn_table *t, uint32_t place, const struct qpn_record *record)
{
	int rc;

	if (place < t->n || place >= QPN_TABLE_MAX || !is_qpn(record->qpn) || !record->process ||
	    record->process >= VNIC_BLOCKS)
		return -EINVAL;
	rc = open_table(t);
	if (!rc && find_qpn_entry(t, record->qpn))
		rc = -EINVAL;
	if (rc)
		return rc;
	while (t->n < place)
		put_unused(t, &t->all[t->n++]);
	rc = fill_entry(t, &t->all[place], record->qpn, record->process);
	if (!rc)
		t->n++;
	return rc;
}

void qpn_table_end_restore(struct qpn_table *t, const bool claimable[VNIC_BLOCKS])
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct qpn_entry *e = &t->all[i];

		if (e->process && !e->holder && !claimable[e->process])
			free_entry(t, e);
	}
}
