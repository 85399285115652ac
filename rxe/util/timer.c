/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "util/timer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/rxe.h>

#define ROOM_MIN 16
/* Entries of each run if the heap has room for `room` timers: a QP has four timers, of which
 * usually one is armed. If a run is full, timers go to the heap. */
#define RUN_ROOM(room) ((room) / 4)
/* Timers of a run are prefetched this many entries ahead. */
#define AHEAD 8

/* timer->place: the number of its run, or HEAP_NUMBER, and the index in it. */
#define NOWHERE     UINT32_MAX
#define INDEX_BITS  28
#define INDEX_MASK  ((1u << INDEX_BITS) - 1)
#define HEAP_NUMBER TIMER_RUNS

static void set_place(const struct timers_entry *entry, uint32_t number, uint32_t index)
{
	if (!entry->timer)
		return;
	entry->timer->queued = entry->queued;
	entry->timer->place = number << INDEX_BITS | (index & INDEX_MASK);
}

void timers_init(struct timers *timers)
{
	*timers = (struct timers){.next = URXE_NEVER};
}

void timers_free(struct timers *timers)
{
	free(timers->heap);
}

void timer_init(struct timer *timer, uint8_t kind)
{
	*timer = (struct timer){.due = URXE_NEVER, .place = NOWHERE, .kind = kind};
}

/* --- Runs. */

static struct timers_entry *run_at(const struct timers *timers, const struct timer_run *run,
				   uint32_t index)
{
	return &run->ring[index & (timers->run_room - 1)];
}

/* Appends an entry to the run. False: the entry is earlier than the last one, or the run is full.
 */
static bool run_add(struct timers *timers, uint32_t number, struct timers_entry entry)
{
	struct timer_run *run = &timers->runs[number];

	if (run->tail - run->head == timers->run_room)
		return false;
	if (run->tail != run->head && run_at(timers, run, run->tail - 1)->queued > entry.queued)
		return false;
	*run_at(timers, run, run->tail) = entry;
	set_place(&entry, number, run->tail++);
	return true;
}

/* Removes empty entries from the end of the run; pop_due() skips those at the front. */
static void run_leave(struct timers *timers, struct timer_run *run, uint32_t index)
{
	run_at(timers, run, index)->timer = NULL;
	while (run->tail != run->head && !run_at(timers, run, run->tail - 1)->timer)
		run->tail--;
}

static struct timer *run_take(const struct timers *timers, struct timer_run *run)
{
	/* A prefetch behind the end is harmless. */
	__builtin_prefetch(run_at(timers, run, run->head + 3 * AHEAD));
	__builtin_prefetch(run_at(timers, run, run->head + AHEAD)->timer);
	return run_at(timers, run, run->head++)->timer;
}

static uint64_t run_next(const struct timers *timers, const struct timer_run *run)
{
	return run->head != run->tail ? run_at(timers, run, run->head)->queued : URXE_NEVER;
}

/* --- The heap. */

static void put_in_heap(struct timers *timers, uint32_t i, struct timers_entry entry)
{
	timers->heap[i] = entry;
	set_place(&entry, HEAP_NUMBER, i);
}

static void sift_up(struct timers *timers, uint32_t i, struct timers_entry entry)
{
	while (i && timers->heap[(i - 1) / 2].queued > entry.queued) {
		put_in_heap(timers, i, timers->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put_in_heap(timers, i, entry);
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
		put_in_heap(timers, i, timers->heap[child]);
		i = child;
	}
	put_in_heap(timers, i, entry);
}

static void heap_leave(struct timers *timers, uint32_t i)
{
	struct timers_entry last = timers->heap[--timers->n];

	if (i == timers->n)
		return;
	if (i && timers->heap[(i - 1) / 2].queued > last.queued)
		sift_up(timers, i, last);
	else
		sift_down(timers, i, last);
}

static struct timer *heap_take(struct timers *timers)
{
	struct timer *timer = timers->heap[0].timer;

	heap_leave(timers, 0);
	return timer;
}

static uint64_t heap_next(const struct timers *timers)
{
	return timers->n ? timers->heap[0].queued : URXE_NEVER;
}

/* --- Runs and heap. */

static void queue_timer(struct timers *timers, struct timer *timer)
{
	const struct timers_entry entry = {.queued = timer->due, .timer = timer};

	if (entry.queued < timers->next)
		timers->next = entry.queued;
	for (uint32_t i = 0; i < TIMER_RUNS; i++)
		if (run_add(timers, i, entry))
			return;
	sift_up(timers, timers->n++, entry);
}

void timer_remove(struct timers *timers, struct timer *timer)
{
	uint32_t number = timer->place >> INDEX_BITS, index = timer->place & INDEX_MASK;

	if (timer->place == NOWHERE)
		return;
	timer->place = NOWHERE;
	if (number == HEAP_NUMBER)
		heap_leave(timers, index);
	else
		run_leave(timers, &timers->runs[number], index);
}

void timer_set(struct timers *timers, struct timer *timer, uint64_t due)
{
	timer->due = due;
	if (timer->place != NOWHERE && due >= timer->queued)
		return;
	timer_remove(timers, timer);
	queue_timer(timers, timer);
}

/* Number of the run with the earliest entry, or HEAP_NUMBER; *queued becomes its time. */
static uint32_t find_earliest(const struct timers *timers, uint64_t *queued)
{
	uint32_t number = HEAP_NUMBER;

	*queued = heap_next(timers);
	for (uint32_t i = 0; i < TIMER_RUNS; i++) {
		uint64_t next = run_next(timers, &timers->runs[i]);

		if (next < *queued) {
			*queued = next;
			number = i;
		}
	}
	return number;
}

/* Removes the first entry of a run or of the heap, and returns its timer; NULL: an empty entry. */
static struct timer *take_first(struct timers *timers, uint32_t number)
{
	struct timer *timer =
		number == HEAP_NUMBER ? heap_take(timers) : run_take(timers, &timers->runs[number]);

	if (timer)
		timer->place = NOWHERE;
	return timer;
}

static struct timer *pop_due(struct timers *timers, uint64_t now)
{
	for (;;) {
		uint32_t number = find_earliest(timers, &timers->next);
		struct timer *timer;

		if (timers->next > now)
			return NULL;
		timer = take_first(timers, number);
		if (!timer || timer->due == URXE_NEVER)
			continue;
		if (timer->due <= now) {
			timer_clear(timer);
			return timer;
		}
		queue_timer(timers, timer);
	}
}

struct timer *timers_pop(struct timers *timers, uint64_t now)
{
	return timers->next <= now ? pop_due(timers, now) : NULL;
}

/* --- Layout. */

/* The entry at this place. NULL: the place is behind the last entry of the heap or run. */
static const struct timers_entry *entry_at(const struct timers *timers, struct timers_place at)
{
	const struct timer_run *run;

	if (!at.number)
		return at.index < timers->n ? &timers->heap[at.index] : NULL;
	run = &timers->runs[at.number - 1];
	return at.index < run->tail - run->head ? run_at(timers, run, run->head + at.index) : NULL;
}

bool timers_place(const struct timers *timers, struct timers_place *place,
		  struct timers_entry *entry)
{
	for (; place->number <= TIMER_RUNS; place->number++, place->index = 0) {
		const struct timers_entry *found = entry_at(timers, *place);

		if (!found)
			continue;
		place->index++;
		*entry = *found;
		return true;
	}
	return false;
}

void timers_clear(struct timers *timers)
{
	struct timers_place place = {0};
	struct timers_entry entry;

	while (timers_place(timers, &place, &entry))
		if (entry.timer)
			entry.timer->place = NOWHERE;
	timers->n = 0;
	timers->next = URXE_NEVER;
	for (uint32_t i = 0; i < TIMER_RUNS; i++)
		timers->runs[i].head = timers->runs[i].tail = 0;
}

bool timers_put(struct timers *timers, uint32_t number, struct timer *timer, uint64_t queued)
{
	const struct timers_entry entry = {.queued = queued < timer->due ? queued : timer->due,
					   .timer = timer};

	if (timer->place != NOWHERE || number > TIMER_RUNS)
		return false;
	if (entry.queued < timers->next)
		timers->next = entry.queued;
	if (number)
		return run_add(timers, number - 1, entry);
	if (timers->n == timers->room)
		return false;
	sift_up(timers, timers->n++, entry);
	return true;
}

bool timers_put_empty(struct timers *timers, uint32_t number, uint64_t queued)
{
	if (!number || number > TIMER_RUNS)
		return false;
	if (queued < timers->next)
		timers->next = queued;
	return run_add(timers, number - 1, (struct timers_entry){.queued = queued});
}

void timers_put_armed(struct timers *timers, struct timer *timer)
{
	if (timer_armed(timer) && timer->place == NOWHERE)
		queue_timer(timers, timer);
}

/* --- Memory. */

static void set_memory(struct timers *timers, struct timers_entry *memory, uint32_t room)
{
	timers->heap = memory;
	timers->room = room;
	timers->run_room = RUN_ROOM(room);
	for (uint32_t i = 0; i < TIMER_RUNS; i++)
		timers->runs[i].ring = memory + room + i * timers->run_room;
}

static void move_entries(struct timers *to, const struct timers *from)
{
	if (from->n)
		memcpy(to->heap, from->heap, from->n * sizeof(*from->heap));
	for (uint32_t i = 0; i < TIMER_RUNS; i++) {
		const struct timer_run *run = &from->runs[i];

		for (uint32_t k = run->head; k != run->tail; k++)
			*run_at(to, &to->runs[i], k) = *run_at(from, run, k);
	}
}

int timers_reserve(struct timers *timers, uint32_t n_timers)
{
	uint32_t room = timers->room ? timers->room : ROOM_MIN;
	struct timers_entry *memory;
	struct timers before = *timers;

	if (n_timers <= timers->room)
		return 0;
	while (room < n_timers)
		room *= 2;
	memory = calloc(room + TIMER_RUNS * RUN_ROOM(room), sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	set_memory(timers, memory, room);
	move_entries(timers, &before);
	free(before.heap);
	return 0;
}
