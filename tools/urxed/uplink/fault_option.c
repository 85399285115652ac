/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/fault_option.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/quantity.h"

/* Default of reorder-time, the longest delay of a reordered frame, ns: some packets pass in that
 * time. */
#define REORDER_NS 100000

/* The longest time that a value may be, ns: an hour. */
#define NS_MAX 3600000000000ull

#define PART_MAX 64

static const struct key {
	const char *name;
	enum { KEY_FRACTION, KEY_TIME, KEY_COUNT } kind;
	size_t offset;
	const char *value_form;
} keys[] = {
#define KEY(name, kind, member, value_form)                                        \
	{                                                                          \
		name, kind, offsetof(struct netdev_impairment, member), value_form \
	}
	KEY("drop", KEY_FRACTION, drop, "a fraction from 0 to 1, or a percentage with %"),
	KEY("duplicate", KEY_FRACTION, duplicate, "a fraction from 0 to 1, or a percentage with %"),
	KEY("reorder", KEY_FRACTION, reorder, "a fraction from 0 to 1, or a percentage with %"),
	KEY("corrupt", KEY_FRACTION, corrupt, "a fraction from 0 to 1, or a percentage with %"),
	KEY("reorder-time", KEY_TIME, reorder_ns, "a time from 1 ns to an hour, such as 100us"),
	KEY("delay", KEY_TIME, delay_ns, "a time up to an hour, such as 100us"),
	KEY("seed", KEY_COUNT, seed, "a whole number"),
#undef KEY
};

static bool read_value(const struct key *key, const char *text, struct netdev_impairment *impair)
{
	void *member = (char *)impair + key->offset;
	uint64_t *ns = member;

	switch (key->kind) {
	case KEY_FRACTION: return quantity_fraction(text, member);
	case KEY_TIME:
		return quantity_read(text, quantity_time, ns) && *ns <= NS_MAX &&
		       (*ns || ns != &impair->reorder_ns);
	default: return quantity_read(text, quantity_count, member);
	}
}

static int read_key(const char *name, const char *value, struct netdev_impairment *impair,
		    char error[FAULT_OPTION_ERROR])
{
	const struct key *key;

	for (key = keys; key < keys + sizeof(keys) / sizeof(keys[0]); key++) {
		if (strcmp(key->name, name))
			continue;
		if (read_value(key, value, impair))
			return 0;
		snprintf(error, FAULT_OPTION_ERROR, "fault %s is %s, not '%s'", name,
			 key->value_form, value);
		return -EINVAL;
	}
	snprintf(error, FAULT_OPTION_ERROR,
		 "unknown fault '%s': use drop, duplicate, reorder, reorder-time, corrupt, delay, "
		 "seed or way",
		 name);
	return -EINVAL;
}

static int read_way(const char *value, struct uplink_impair *impair, char error[FAULT_OPTION_ERROR])
{
	impair->both_ways = !strcmp(value, "both");
	if (impair->both_ways || !strcmp(value, "out"))
		return 0;
	snprintf(error, FAULT_OPTION_ERROR, "fault way is both or out, not '%s'", value);
	return -EINVAL;
}

/* Parses one KEY=VALUE. Returns the text behind it, or NULL on error. */
static const char *read_part(const char *text, struct uplink_impair *impair,
			     char error[FAULT_OPTION_ERROR])
{
	size_t length = strcspn(text, ",");
	char part[PART_MAX], *value;
	int rc;

	snprintf(part, sizeof(part), "%.*s", (int)length, text);
	value = strchr(part, '=');
	if (length >= sizeof(part) || !value) {
		snprintf(error, FAULT_OPTION_ERROR,
			 "fault '%s' is not of the form KEY=VALUE, such as drop=1%%", part);
		return NULL;
	}
	*value++ = '\0';
	rc = strcmp(part, "way") ? read_key(part, value, &impair->tx, error)
				 : read_way(value, impair, error);
	return rc ? NULL : text + length;
}

int fault_option_parse(const char *text, struct uplink_impair *impair,
		       char error[FAULT_OPTION_ERROR])
{
	*impair = (struct uplink_impair){.asked = true, .both_ways = true};
	impair->tx.reorder_ns = REORDER_NS;
	for (; (text = read_part(text, impair, error)) && *text; text++)
		;
	if (!text)
		return -EINVAL;
	impair->rx = impair->tx;
	impair->rx.seed++;
	return 0;
}
