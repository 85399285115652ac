/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/user_counts.h"

#include <errno.h>
#include <stdlib.h>

#include "urxed/session/quota.h"

#define ROOM_FIRST 8

/* Returns the count of a user; NULL: the user holds none. A linear search suffices, because few
 * users share a host. */
static struct user_count *find_user(const struct user_counts *counts, uid_t user)
{
	for (uint32_t i = 0; i < counts->len; i++)
		if (counts->at[i].user == user)
			return &counts->at[i];
	return NULL;
}

uint32_t user_counts_get(const struct user_counts *counts, uid_t user)
{
	const struct user_count *c = find_user(counts, user);

	return c ? c->n : 0;
}

static struct user_count *add_user(struct user_counts *counts, uid_t user)
{
	uint32_t room = counts->room ? counts->room * 2 : ROOM_FIRST;
	struct user_count *at = counts->at;

	if (counts->len == counts->room) {
		at = realloc(at, room * sizeof(*at));
		if (!at)
			return NULL;
		counts->at = at;
		counts->room = room;
	}
	at[counts->len] = (struct user_count){.user = user};
	return &at[counts->len++];
}

int user_counts_add(struct user_counts *counts, uid_t user)
{
	struct user_count *c = find_user(counts, user);

	if (!c)
		c = add_user(counts, user);
	if (!c)
		return -ENOMEM;
	c->n++;
	counts->total++;
	return 0;
}

int user_counts_take(struct user_counts *counts, uid_t user, uint32_t limit)
{
	if (!quota_allows(user, user_counts_get(counts, user), counts->total, limit))
		return -ENOSPC;
	return user_counts_add(counts, user);
}

void user_counts_drop(struct user_counts *counts, uid_t user)
{
	struct user_count *c = find_user(counts, user);

	counts->total--;
	if (!--c->n)
		*c = counts->at[--counts->len];
}

void user_counts_free(struct user_counts *counts)
{
	free(counts->at);
	*counts = (struct user_counts){0};
}
