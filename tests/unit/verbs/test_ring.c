/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* librxe's rings: a work queue moves to a larger or smaller ring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "queues/ring.h"

#define OFFSET (1u << 24)

static int memfd;
static struct queue_space space;

static int setup(void **state)
{
	(void)state;
	space = (struct queue_space){.offset = OFFSET, .mapped = OFFSET};
	memfd = memfd_create("rings", MFD_CLOEXEC);
	return memfd < 0 || ftruncate(memfd, OFFSET);
}

static int teardown(void **state)
{
	(void)state;
	queue_space_unmap_rest(&space);
	return close(memfd);
}

static struct queue make(uint32_t elements)
{
	struct queue queue;

	assert_int_equal(queue_create(&queue, &space, memfd, elements, 64), 0);
	assert_true(queue_capacity(&queue) >= elements);
	return queue;
}

/* The application adds entries. */
static void post(struct work_queue *wq, uint32_t n)
{
	queue_set_producer(&wq->ring, queue_producer(&wq->ring) + n);
}

/* How many entries the application counts as occupied. */
static uint32_t occupied(const struct work_queue *wq)
{
	return (queue_producer(&wq->ring) - queue_consumer(&wq->ring)) & wq->ring.mask;
}

static void copy_out(struct work_queue *wq)
{
	wq->cursor += work_queue_posted(wq);
}

/* From any index in the old ring: outstanding entries stay outstanding, and retire one by one. */
static void a_work_queue_moves(void **state)
{
	(void)state;
	for (uint32_t retired = 0; retired < 20; retired++)
		for (uint32_t outstanding = 0; outstanding <= 7; outstanding++) {
			struct work_queue wq = {.ring = make(7)};
			struct queue larger, smaller;
			uint32_t count = 0;

			for (; count < retired; count++) {
				post(&wq, 1);
				copy_out(&wq);
				work_queue_release(&wq, count + 1);
			}
			post(&wq, outstanding);
			copy_out(&wq);
			larger = make(31);
			work_queue_move(&wq, &larger, count);
			assert_int_equal(occupied(&wq), outstanding);
			assert_int_equal(work_queue_posted(&wq), 0);
			post(&wq, 5);
			assert_int_equal(work_queue_posted(&wq), 5);
			copy_out(&wq);
			work_queue_release(&wq, count += outstanding);
			assert_int_equal(occupied(&wq), 5);
			smaller = make(5);
			work_queue_move(&wq, &smaller, count);
			assert_int_equal(occupied(&wq), 5);
			work_queue_release(&wq, count += 5);
			assert_int_equal(occupied(&wq), 0);
			queue_destroy(&wq.ring);
		}
}

/* Rings lie one behind the other in the memfd; without room the creation fails. */
static void there_is_no_room(void **state)
{
	struct queue first = make(7), second = make(7), third;

	(void)state;
	assert_int_equal(second.offset + queue_mminfo(&second).size, first.offset);
	queue_space_unmap_rest(&space);
	space.offset = space.mapped = queue_mminfo(&second).size - 1;
	assert_int_not_equal(queue_create(&third, &space, memfd, 7, 64), 0);
	assert_int_equal(space.offset, queue_mminfo(&second).size - 1);
	queue_destroy(&first);
	queue_destroy(&second);
	queue_destroy(&second); /* a second call has no effect */
}

static int count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int c, n = 0;

	assert_non_null(maps);
	while ((c = getc(maps)) != EOF)
		n += c == '\n';
	fclose(maps);
	return n;
}

/* Linux allows a process 65,530 mappings, and the test creates as many rings. */
static void rings_share_mappings(void **state)
{
	static struct queue rings[1000];
	int before = count_mappings();

	(void)state;
	for (int i = 0; i < 1000; i++)
		rings[i] = make(7);
	assert_in_range(count_mappings(), 0, before + 20);
	for (int i = 0; i < 1000; i++) {
		rings[i].buf->producer_index = (uint32_t)i;
		queue_destroy(&rings[i]);
	}
	queue_space_unmap_rest(&space);
	assert_in_range(count_mappings(), 0, before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_work_queue_moves, setup, teardown),
		cmocka_unit_test_setup_teardown(there_is_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(rings_share_mappings, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
