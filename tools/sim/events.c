/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/events.h"

#include <stdlib.h>

#include "sim/alloc.h"

/* Children per node: four events of 24 bytes lie in two or three cache lines. */
#define CHILDREN 4

static bool is_earlier(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->serial < b->serial);
}

void events_free(struct events *events)
{
	free(events->heap);
	*events = (struct events){0};
}

void events_add(struct events *events, uint64_t at, enum event_kind kind, void *object)
{
	const struct event event = {at, events->serial++ << 2 | kind, object};
	uint32_t i = events->n++;

	if (events->n > events->room) {
		events->room = events->room ? 2 * events->room : 256;
		events->heap = sim_realloc(events->heap, events->room * sizeof(*events->heap));
	}
	events->n_frames += kind != EVENT_WAKE;
	for (; i && is_earlier(&event, &events->heap[(i - 1) / CHILDREN]); i = (i - 1) / CHILDREN)
		events->heap[i] = events->heap[(i - 1) / CHILDREN];
	events->heap[i] = event;
}

static uint32_t find_earliest_child(const struct events *events, uint32_t parent)
{
	uint32_t first = CHILDREN * parent + 1, best = first;

	for (uint32_t i = first + 1; i < first + CHILDREN && i < events->n; i++)
		if (is_earlier(&events->heap[i], &events->heap[best]))
			best = i;
	return best;
}

bool events_pop(struct events *events, struct event *event)
{
	struct event last;
	uint32_t i = 0;

	if (!events->n)
		return false;
	*event = events->heap[0];
	events->n_frames -= event_kind(event) != EVENT_WAKE;
	last = events->heap[--events->n];
	while (CHILDREN * i + 1 < events->n) {
		uint32_t child = find_earliest_child(events, i);

		if (!is_earlier(&events->heap[child], &last))
			break;
		events->heap[i] = events->heap[child];
		i = child;
	}
	events->heap[i] = last;
	return true;
}
