/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters by their names, because another version of urxe may have other counters. The stream
 * leaves out counters that are 0; restoring ignores counters that this version does not know. */
#include <string.h>

#include <rxe/counters.h>

#include "state/state_records.h"

#define NAME_MAX 63
/* Least bytes of an entry: the length of a name, and a value. */
#define ENTRY_MIN 9

static const char *counter_name(uint32_t i)
{
	return i < URXE_EVENT_COUNT ? urxe_event_name(i) : urxe_drop_name(i - URXE_EVENT_COUNT);
}

static uint64_t *counter_at(struct urxe_counters *counters, uint32_t i)
{
	return i < URXE_EVENT_COUNT ? &counters->event[i] : &counters->drop[i - URXE_EVENT_COUNT];
}

#define COUNTERS (URXE_EVENT_COUNT + URXE_DROP_COUNT)

static void save_counters(struct state_stream *s, struct urxe_counters *counters)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < COUNTERS; i++)
		n += *counter_at(counters, i) && counter_name(i);
	state_count(s, n, ENTRY_MIN);
	for (uint32_t i = 0; i < COUNTERS; i++) {
		const char *name = counter_name(i);
		uint8_t length;

		if (!*counter_at(counters, i) || !name)
			continue;
		length = (uint8_t)strlen(name);
		state_u8(s, &length);
		state_bytes(s, (void *)(uintptr_t)name, length);
		state_u64(s, counter_at(counters, i));
	}
}

static uint64_t *find_counter(struct urxe_counters *counters, const char *name)
{
	for (uint32_t i = 0; i < COUNTERS; i++)
		if (counter_name(i) && !strcmp(counter_name(i), name))
			return counter_at(counters, i);
	return NULL;
}

static void restore_counter(struct state_stream *s, struct urxe_counters *counters)
{
	char name[NAME_MAX + 1] = {0};
	uint64_t value, *counter;
	uint8_t length;

	state_u8_max(s, &length, NAME_MAX);
	state_bytes(s, name, length);
	state_u64(s, &value);
	counter = find_counter(counters, name);
	if (counter)
		*counter = value;
}

void counters_record(struct state_stream *s, struct urxe_counters *counters)
{
	if (!s->restoring) {
		save_counters(s, counters);
		return;
	}
	for (uint32_t n = state_count(s, 0, ENTRY_MIN); n && state_ok(s); n--)
		restore_counter(s, counters);
}
