/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/switch_port.h"

#include <stddef.h>

static const char *const kind_names[] = {[SWITCH_URXED] = "urxed",
					 [SWITCH_UPLINK] = "uplink",
					 [SWITCH_VM] = "vm",
					 [SWITCH_PROCESS] = "process"};

static const char *const drop_names[SWITCH_DROP_COUNT] = {
#define DROP_NAME(id, name, text) [SWITCH_DROP_##id] = name,
	SWITCH_DROP_LIST(DROP_NAME)
#undef DROP_NAME
};

const char *switch_port_kind_name(enum switch_port_kind kind)
{
	return kind_names[kind];
}

const char *switch_drop_name(enum switch_drop drop)
{
	return drop < SWITCH_DROP_COUNT ? drop_names[drop] : NULL;
}

void switch_stats_add(struct switch_stats *a, const struct switch_stats *b)
{
	uint32_t i;

	for (i = 0; i < SWITCH_COUNTER_COUNT; i++)
		a->counters[i] += b->counters[i];
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		a->drops[i] += b->drops[i];
}
