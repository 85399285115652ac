/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "timer.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <rxe/rxe.h>

void timers_free(struct timers *timers)
{
	free(timers->heap);
}

int timers_reserve(struct timers *timers, uint32_t n_timers)
{
	uint32_t room = timers->room ? timers->room : 16;
	struct timers_entry *heap;

	if (n_timers <= timers->room)
		return 0;
	while (room < n_timers)
		room *= 2;
	heap = realloc(timers->heap, room * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	timers->heap = heap;
	timers->room = room;
	return 0;
}

void timer_init(struct timer *timer, struct urxe_qp *qp, void (*fired)(struct urxe_qp *qp))
{
	*timer = (struct timer){.due = URXE_NEVER, .fired = fired, .qp = qp};
}

static void put(struct timers *timers, uint32_t i, struct timers_entry entry)
{
	timers->heap[i] = entry;
	entry.timer->slot = i + 1;
}

static void sift_up(struct timers *timers, uint32_t i, struct timers_entry entry)
{
	while (i && timers->heap[(i - 1) / 2].queued > entry.queued) {
		put(timers, i, timers->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put(timers, i, entry);
}

static void sift_down(struct timers *timers, uint32_t i, struct timers_entry entry)
{
	uint32_t child;

	while ((child = 2 * i + 1) < timers->n) {
		if (child + 1 < timers->n &&
		    timers->heap[child + 1].queued < timers->heap[child].queued)
			child++;
		if (timers->heap[child].queued >= entry.queued)
			break;
		put(timers, i, timers->heap[child]);
		i = child;
	}
	put(timers, i, entry);
}

void timer_set(struct timers *timers, struct timer *timer, uint64_t due)
{
	const struct timers_entry entry = {.queued = due, .timer = timer};

	timer->due = due;
	if (!timer->slot)
		sift_up(timers, timers->n++, entry);
	else if (due < timers->heap[timer->slot - 1].queued)
		sift_up(timers, timer->slot - 1, entry);
}

void timer_remove(struct timers *timers, struct timer *timer)
{
	uint32_t i = timer->slot - 1;
	struct timers_entry last;

	if (!timer->slot)
		return;
	timer->slot = 0;
	last = timers->heap[--timers->n];
	if (last.timer == timer)
		return;
	if (i && timers->heap[(i - 1) / 2].queued > last.queued)
		sift_up(timers, i, last);
	else
		sift_down(timers, i, last);
}

struct timer *timers_pop(struct timers *timers, uint64_t now)
{
	while (timers->n && timers->heap[0].queued <= now) {
		struct timer *timer = timers->heap[0].timer;

		if (timer->due > now && timer->due != URXE_NEVER) {
			sift_down(timers, 0,
				  (struct timers_entry){.queued = timer->due, .timer = timer});
			continue;
		}
		timer_remove(timers, timer);
		if (timer->due != URXE_NEVER) {
			timer_clear(timer);
			return timer;
		}
	}
	return NULL;
}

uint64_t timers_next(const struct timers *timers)
{
	return timers->n ? timers->heap[0].queued : URXE_NEVER;
}
