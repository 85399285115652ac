/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* librxe's rings: a work queue moves to a larger or smaller ring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "queues/librxe_ring.h"

#define OFFSET (1u << 26)

static int memfd;
static struct ring_space space;

static int setup(void **state)
{
	(void)state;
	space = (struct ring_space){.top = OFFSET};
	memfd = memfd_create("rings", MFD_CLOEXEC);
	return memfd < 0 || ftruncate(memfd, OFFSET);
}

static int teardown(void **state)
{
	(void)state;
	ring_space_close(&space);
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
static void resized_work_queue_keeps_outstanding_entries(void **state)
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
			work_queue_move(&wq, &larger, count, &space);
			assert_int_equal(occupied(&wq), outstanding);
			assert_int_equal(work_queue_posted(&wq), 0);
			post(&wq, 5);
			assert_int_equal(work_queue_posted(&wq), 5);
			copy_out(&wq);
			work_queue_release(&wq, count += outstanding);
			assert_int_equal(occupied(&wq), 5);
			smaller = make(5);
			work_queue_move(&wq, &smaller, count, &space);
			assert_int_equal(occupied(&wq), 5);
			work_queue_release(&wq, count += 5);
			assert_int_equal(occupied(&wq), 0);
			queue_destroy(&wq.ring, &space);
		}
}

/* Rings lie one behind the other in the memfd; without room the creation fails. */
static void ring_without_room_is_not_created(void **state)
{
	struct queue first = make(7), second = make(7), third;
	uint64_t room = queue_mminfo(&second).size - 1;
	struct ring_space small = {.top = room};

	(void)state;
	assert_int_equal(second.offset + queue_mminfo(&second).size, first.offset);
	assert_int_not_equal(queue_create(&third, &small, memfd, 7, 64), 0);
	ring_space_close(&small);
	queue_destroy(&first, &space);
	queue_destroy(&second, &space);
	queue_destroy(&second, &space); /* a second call has no effect */
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

/* Whether 100 rings in turn, each created `overlap` before the last one ends, find room. */
static void replace_large_rings(bool overlap)
{
	struct queue stays = make(7), ring = make((1u << 18) - 1); /* a quarter of the space */

	for (int i = 0; i < 100; i++) {
		struct queue next = {0};

		if (overlap)
			next = make((1u << 18) - 1);
		queue_destroy(&ring, &space);
		ring = overlap ? next : make((1u << 18) - 1);
		assert_int_equal(queue_producer(&ring), 0);
		queue_set_producer(&ring, 5);
		if (i % 10 == 0) {
			struct queue small = make(7);

			queue_destroy(&stays, &space);
			stays = small;
		}
	}
	queue_destroy(&ring, &space);
	queue_destroy(&stays, &space);
}

static void offsets_of_destroyed_rings_are_used_again(void **state)
{
	(void)state;
	replace_large_rings(false);
	replace_large_rings(true);
}

/* MADV_REMOVE refuses locked pages. */
static void a_ring_follows_one_in_locked_memory(void **state)
{
	struct queue ring = make(7);
	const uint64_t offset = ring.offset;

	(void)state;
	queue_set_producer(&ring, 5);
	assert_int_equal(mlock(ring.buf, queue_bytes(&ring)), 0);
	queue_destroy(&ring, &space);
	ring_space_unmap_room(&space);
	ring = make(7);
	assert_true(ring.offset == offset);
	assert_int_equal(queue_producer(&ring), 0);
	queue_destroy(&ring, &space);
}

#define RINGS 4000

static struct queue rings[RINGS];
static void *program[RINGS];

/* A fixed permutation: 1,999 and RINGS have no common divisor. */
static int shuffled(int i)
{
	return i * 1999 % RINGS;
}

/* Maps the ring as librxe does. */
static void *map_ring(const struct queue *ring)
{
	void *start = mmap(NULL, queue_bytes(ring), PROT_READ | PROT_WRITE, MAP_SHARED, memfd,
			   (off_t)ring->offset);

	assert_true(start != MAP_FAILED);
	ring_space_mapped(&space, ring->offset, start, queue_bytes(ring));
	return start;
}

/* As the interposed munmap. Returns whether the slab keeps the mapping. */
static bool unmap_ring(void *start, size_t length)
{
	struct destroyed_ring ring;

	if (ring_take_destroyed(start, length, &ring) && ring_space_keep(&ring))
		return true;
	assert_int_equal(munmap(start, length), 0);
	return false;
}

/* Linux allows a process 65,530 mappings; 300,000 rings were destroyed in random order. */
static void thousands_of_rings_need_few_mappings(void **state)
{
	int before = count_mappings();

	(void)state;
	for (int i = 0; i < RINGS; i++) {
		rings[i] = make(7);
		program[i] = map_ring(&rings[i]);
	}
	assert_in_range(count_mappings(), 0, before + 20);
	for (int i = 0; i < RINGS; i++) {
		struct queue *ring = &rings[shuffled(i)];
		size_t length = queue_bytes(ring);

		ring->buf->producer_index = (uint32_t)i;
		queue_destroy(ring, &space);
		unmap_ring(program[shuffled(i)], length);
		if (i % 500 == 0)
			assert_in_range(count_mappings(), 0, before + 30);
	}
	ring_space_close(&space);
	/* The allocator may keep some, as AddressSanitizer's does. */
	assert_in_range(count_mappings(), 0, before + 20);
}

/* The memory of a destroyed ring is free at once, also if its mappings stay. */
static void destroyed_rings_take_no_memory(void **state)
{
	struct queue stays, ring;
	struct stat st;
	void *start;

	(void)state;
	stays = make(7);
	for (int i = 0; i < 100; i++) {
		ring = make(7);
		start = map_ring(&ring);
		*(uint64_t *)start = 1;
		queue_destroy(&ring, &space);
		assert_true(unmap_ring(start, queue_bytes(&stays)));
	}
	assert_int_equal(fstat(memfd, &st), 0);
	assert_int_equal(st.st_blocks, (blkcnt_t)(queue_bytes(&stays) / 512));
	queue_destroy(&stays, &space);
}

/* The thread maps other memory where a ring was mapped: that memory is its own. */
static void other_memory_is_unmapped(void **state)
{
	struct queue stays, ring;
	struct destroyed_ring destroyed;
	size_t length;
	void *start;

	(void)state;
	stays = make(7);
	ring = make(7);
	start = map_ring(&ring);
	length = queue_bytes(&ring);
	queue_destroy(&ring, &space);
	/* Past the interposed munmap. */
	assert_int_equal(munmap(start, length), 0);
	assert_ptr_equal(mmap(start, length, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 start);
	assert_false(unmap_ring(start, length));
	/* Each destruction stands for one call, of the ring's address and length. */
	ring = make(7);
	start = map_ring(&ring);
	queue_destroy(&ring, &space);
	assert_false(ring_take_destroyed((uint8_t *)start + 1, length, &destroyed));
	assert_false(ring_take_destroyed(start, length - 1, &destroyed));
	assert_true(unmap_ring(start, length));
	assert_false(ring_take_destroyed(start, length, &destroyed));
	queue_destroy(&stays, &space);
}

/* The program maps memory of its own over a mapping that the slab has kept. */
static void memory_over_a_kept_mapping_stays(void **state)
{
	struct queue stays = make(7), ring = make(7);
	size_t length = queue_bytes(&ring);
	void *start = map_ring(&ring);

	(void)state;
	queue_destroy(&ring, &space);
	assert_true(unmap_ring(start, length));
	assert_ptr_equal(mmap(start, length, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 start);
	memset(start, 5, length);
	queue_destroy(&stays, &space);
	ring_space_close(&space);
	for (size_t at = 0; at < length; at += 4096)
		assert_int_equal(((uint8_t *)start)[at], 5);
	assert_int_equal(munmap(start, length), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resized_work_queue_keeps_outstanding_entries, setup,
						teardown),
		cmocka_unit_test_setup_teardown(ring_without_room_is_not_created, setup, teardown),
		cmocka_unit_test_setup_teardown(offsets_of_destroyed_rings_are_used_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_ring_follows_one_in_locked_memory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(thousands_of_rings_need_few_mappings, setup,
						teardown),
		cmocka_unit_test_setup_teardown(destroyed_rings_take_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(other_memory_is_unmapped, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_over_a_kept_mapping_stays, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
