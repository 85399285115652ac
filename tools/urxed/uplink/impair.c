/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/impair.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/quantity.h"

/* How much later a reordered frame comes at most, where nothing is said of it: some packets. */
#define REORDER_NS 100000

/* The longest time in a specification: an hour. */
#define NS_MAX 3600000000000ull

#define PART_MAX 64

static const struct key {
	const char *name;
	enum { KEY_SHARE, KEY_TIME, KEY_COUNT } kind;
	size_t offset;
	const char *is;
} keys[] = {
#define KEY(name, kind, member, is)                                   \
	{                                                             \
		name, kind, offsetof(struct netdev_fault, member), is \
	}
	KEY("drop", KEY_SHARE, drop, "a share from 0 to 1, or with %"),
	KEY("duplicate", KEY_SHARE, duplicate, "a share from 0 to 1, or with %"),
	KEY("reorder", KEY_SHARE, reorder, "a share from 0 to 1, or with %"),
	KEY("corrupt", KEY_SHARE, corrupt, "a share from 0 to 1, or with %"),
	KEY("reorder-time", KEY_TIME, reorder_ns, "a time from 1 ns to an hour, as 100us is"),
	KEY("delay", KEY_TIME, delay_ns, "a time up to an hour, as 100us is"),
	KEY("seed", KEY_COUNT, seed, "a whole number"),
#undef KEY
};

static bool read_value(const struct key *key, const char *text, struct netdev_fault *fault)
{
	void *member = (char *)fault + key->offset;
	uint64_t *ns = member;

	switch (key->kind) {
	case KEY_SHARE: return quantity_fraction(text, member);
	case KEY_TIME:
		return quantity_read(text, quantity_time, ns) && *ns <= NS_MAX &&
		       (*ns || ns != &fault->reorder_ns);
	default: return quantity_read(text, quantity_count, member);
	}
}

static int read_key(const char *name, const char *value, struct netdev_fault *fault,
		    char error[IMPAIR_ERROR])
{
	const struct key *key;

	for (key = keys; key < keys + sizeof(keys) / sizeof(keys[0]); key++) {
		if (strcmp(key->name, name))
			continue;
		if (read_value(key, value, fault))
			return 0;
		snprintf(error, IMPAIR_ERROR, "fault %s is %s, not '%s'", name, key->is, value);
		return -EINVAL;
	}
	snprintf(error, IMPAIR_ERROR,
		 "there is no fault '%s': drop, duplicate, reorder, reorder-time, corrupt, delay, "
		 "seed and way are known",
		 name);
	return -EINVAL;
}

static int read_way(const char *value, struct uplink_impair *fault, char error[IMPAIR_ERROR])
{
	fault->both_ways = !strcmp(value, "both");
	if (fault->both_ways || !strcmp(value, "out"))
		return 0;
	snprintf(error, IMPAIR_ERROR, "fault way is both or out, not '%s'", value);
	return -EINVAL;
}

/* One KEY=VALUE; returns what is behind it, NULL on error. */
static const char *read_part(const char *text, struct uplink_impair *fault,
			     char error[IMPAIR_ERROR])
{
	size_t length = strcspn(text, ",");
	char part[PART_MAX], *value;
	int rc;

	snprintf(part, sizeof(part), "%.*s", (int)length, text);
	value = strchr(part, '=');
	if (length >= sizeof(part) || !value) {
		snprintf(error, IMPAIR_ERROR,
			 "fault '%s' is not of the form KEY=VALUE, as drop=1%% is", part);
		return NULL;
	}
	*value++ = '\0';
	rc = strcmp(part, "way") ? read_key(part, value, &fault->tx, error)
				 : read_way(value, fault, error);
	return rc ? NULL : text + length;
}

int impair_parse(const char *text, struct uplink_impair *fault, char error[IMPAIR_ERROR])
{
	*fault = (struct uplink_impair){.asked = true, .both_ways = true};
	fault->tx.reorder_ns = REORDER_NS;
	for (; (text = read_part(text, fault, error)) && *text; text++)
		;
	if (!text)
		return -EINVAL;
	fault->rx = fault->tx;
	fault->rx.seed++;
	return 0;
}
