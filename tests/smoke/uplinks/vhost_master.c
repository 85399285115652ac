/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile virtual machine at the socket of a vhost: uplink.
 *
 *	vhost_master PATH            lists the attacks
 *	vhost_master PATH ATTACK     carries one out
 *	vhost_master PATH soak SECONDS SEED
 *
 * The exit status is 0 whatever the other side did, and 2 if nobody listens.
 */
#include "vhost_master.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rand.h"

#define PAGE 4096u
/* How long the other side gets to run into the trap, in us. */
#define PATIENCE 300000

#define VRING_DESC_F_NEXT     1
#define VRING_DESC_F_WRITE    2
#define VRING_DESC_F_INDIRECT 4

static struct rand rand_state = {1};

static uint32_t pick(uint32_t below)
{
	return rand_below(&rand_state, below);
}

static void kick_queues(struct master *m)
{
	for (int i = 0; i < MASTER_QUEUES; i++)
		if (m->kick[i] >= 0 && write(m->kick[i], &(uint64_t){1}, 8) != 8)
			break;
	usleep(PATIENCE);
}

/* --- Memory tables */

/* One buffer for each entry of both queues, behind the queues. */
static void fill_queues(struct master *m)
{
	for (uint32_t i = 0; i < MASTER_SIZE; i++) {
		for (int j = 0; j < MASTER_QUEUES; j++) {
			m->queues[j].desc[i] =
				(struct vring_desc){MASTER_GPA + MASTER_MEMORY / 2 + i * 1536, 1500,
						    j ? 0 : VRING_DESC_F_WRITE, 0};
			m->queues[j].avail.ring[i] = (uint16_t)i;
		}
	}
	for (int j = 0; j < MASTER_QUEUES; j++)
		m->queues[j].avail.idx = MASTER_SIZE / 2;
}

/* The queues lie in the file, the buffers behind its end. */
static void attack_truncated_table(struct master *m)
{
	_Static_assert(sizeof(*m->queues) * MASTER_QUEUES <= 4 * PAGE, "the queues");
	fill_queues(m);
	if (ftruncate(m->memory, 4 * PAGE) || master_start(m))
		return;
	kick_queues(m);
}

static void attack_empty_table(struct master *m)
{
	if (master_negotiate(m) || ftruncate(m->memory, 0))
		return;
	master_send_table(m, MASTER_MEMORY, 0, m->memory);
	kick_queues(m);
}

static void attack_truncated_later(struct master *m)
{
	fill_queues(m);
	if (master_start(m))
		return;
	usleep(PATIENCE);
	if (ftruncate(m->memory, 0))
		return;
	kick_queues(m);
	kick_queues(m);
}

static void attack_huge_region(struct master *m)
{
	static const uint64_t sizes[] = {1ull << 60, UINT64_MAX, 1ull << 40, 0, 1};

	if (master_negotiate(m))
		return;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (master_send_table(m, sizes[i], i & 1 ? UINT64_MAX - 8 : 0, m->memory))
			return;
}

static void attack_many_regions(struct master *m)
{
	uint32_t table[1024];

	memset(table, 0xff, sizeof(table));
	if (master_negotiate(m))
		return;
	master_send(m, VHOST_SET_MEM_TABLE, table, 8 + 8 * 32, &m->memory, 1);
	master_send(m, VHOST_SET_MEM_TABLE, table, sizeof(table), &m->memory, 1);
}

static void attack_strange_files(struct master *m)
{
	static const char *const names[] = {"/dev/zero", "/dev/null", "/", "/proc/self/status"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int fd = open(names[i], O_RDONLY | O_CLOEXEC);

		if (!master_negotiate(m) && !master_send_table(m, MASTER_MEMORY, 0, fd))
			master_start_queue(m, 1);
		close(fd);
	}
}

/* --- Descriptors */

static void attack_no_descriptors(struct master *m)
{
	uint64_t zero = 0;

	if (master_negotiate(m))
		return;
	for (uint32_t request = 1; request < VHOST_REQUESTS; request++)
		if (master_send(m, request, &zero, sizeof(zero), NULL, 0))
			return;
}

static void attack_many_descriptors(struct master *m)
{
	int fds[MASTER_FDS];
	uint64_t zero = 0;

	for (int i = 0; i < MASTER_FDS; i++)
		fds[i] = m->memory;
	if (master_negotiate(m))
		return;
	for (uint32_t request = 1; request < VHOST_REQUESTS; request++)
		if (master_send(m, request, &zero, sizeof(zero), fds, 1 + (int)pick(MASTER_FDS)))
			return;
}

/* --- Rings */

static void attack_ring_addresses(struct master *m)
{
	const uint64_t start = (uintptr_t)m->queues, end = start + MASTER_MEMORY;
	const uint64_t places[] = {0, start - 1, end, end - 1, end - 64, UINT64_MAX, start + 1};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (master_start(m))
			return;
		master_send_addresses(m, 1, places[i], start, start);
		master_send_addresses(m, 1, start, places[i], start);
		master_send_addresses(m, 1, start, start, places[i]);
		master_start_queue(m, 0);
		kick_queues(m);
	}
}

static void attack_queue_numbers(struct master *m)
{
	static const uint32_t numbers[] = {0, 1, 3, 32768, 65535, UINT32_MAX};

	if (master_start(m))
		return;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const uint32_t size[2] = {1, numbers[i]}, queue[2] = {numbers[i], MASTER_SIZE};

		if (master_send(m, VHOST_SET_VRING_NUM, size, 8, NULL, 0) ||
		    master_send(m, VHOST_SET_VRING_BASE, size, 8, NULL, 0) ||
		    master_send(m, VHOST_SET_VRING_NUM, queue, 8, NULL, 0) ||
		    master_send(m, VHOST_SET_VRING_ENABLE, queue, 8, NULL, 0))
			return;
	}
	kick_queues(m);
}

static void attack_wrong_order(struct master *m)
{
	const uint32_t on[2] = {1, 1};

	master_send(m, VHOST_SET_VRING_ENABLE, on, sizeof(on), NULL, 0);
	master_start_queue(m, 1);
	master_start_queue(m, 0);
	master_negotiate(m);
	master_send(m, VHOST_GET_VRING_BASE, on, sizeof(on), NULL, 0);
	master_send_table(m, MASTER_MEMORY, 0, m->memory);
	master_send(m, VHOST_SET_VRING_ENABLE, on, sizeof(on), NULL, 0);
	master_send(m, VHOST_RESET_OWNER, NULL, 0, NULL, 0);
	master_send(m, VHOST_SET_VRING_ENABLE, on, sizeof(on), NULL, 0);
	kick_queues(m);
}

static void attack_garbage_index(struct master *m)
{
	if (master_start(m))
		return;
	for (int round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < MASTER_SIZE; i++)
			m->queues[1].avail.ring[i] = (uint16_t)pick(65536);
		for (int i = 0; i < MASTER_QUEUES; i++)
			m->queues[i].avail.idx = (uint16_t)pick(65536);
		kick_queues(m);
	}
}

/* Chains without an end, directly and by an indirect table that refers to itself. */
static void attack_loops(struct master *m)
{
	const uint64_t table = MASTER_GPA + ((uint8_t *)m->queues[1].desc - (uint8_t *)m->queues);

	if (master_start(m))
		return;
	for (uint32_t i = 0; i < MASTER_SIZE; i++) {
		m->queues[1].desc[i] = (struct vring_desc){
			i & 1 ? table : MASTER_GPA + MASTER_MEMORY / 2, 64,
			i & 1 ? VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT : VRING_DESC_F_NEXT,
			(uint16_t)(i & 2 ? i : i + 1)};
		m->queues[1].avail.ring[i] = (uint16_t)i;
	}
	m->queues[0] = m->queues[1];
	m->queues[1].avail.idx = MASTER_SIZE;
	kick_queues(m);
}

static void attack_descriptor_addresses(struct master *m)
{
	static const uint64_t places[] = {0, UINT64_MAX, MASTER_GPA + MASTER_MEMORY - 1,
					  MASTER_GPA - 8};

	if (master_start(m))
		return;
	for (uint32_t i = 0; i < MASTER_SIZE; i++) {
		m->queues[1].desc[i] =
			(struct vring_desc){places[i % 4], i & 8 ? UINT32_MAX : 1500,
					    i & 4 ? VRING_DESC_F_WRITE : 0, (uint16_t)(i + 1)};
		m->queues[1].avail.ring[i] = (uint16_t)i;
	}
	memcpy(m->queues[0].desc, m->queues[1].desc, sizeof(m->queues[0].desc));
	for (int i = 0; i < MASTER_QUEUES; i++)
		m->queues[i].avail.idx = MASTER_SIZE;
	kick_queues(m);
}

/* --- Messages */

static void attack_sizes(struct master *m)
{
	static const uint32_t sizes[] = {0, 1, 7, 4096, 65536, UINT32_MAX};
	uint8_t payload[8192] = {0};

	if (master_negotiate(m))
		return;
	for (uint32_t request = 0; request < VHOST_REQUESTS; request++) {
		const uint32_t size = sizes[request % 6];

		if (master_send_raw(m, request, size, payload,
				    size < sizeof(payload) ? size : sizeof(payload), NULL, 0))
			return;
	}
}

/* Half a message, then silence, while the socket stays open. */
static void attack_half(struct master *m)
{
	if (master_send_raw(m, VHOST_SET_MEM_TABLE, 264, "half", 4, NULL, 0))
		return;
	usleep(2 * PATIENCE);
}

static void attack_random(struct master *m)
{
	uint8_t payload[512];

	if (pick(2) && master_start(m))
		return;
	for (int i = 0; i < 200; i++) {
		const uint32_t size = pick(2) ? 8 * pick(8) : pick(sizeof(payload));

		for (uint32_t j = 0; j < size; j++)
			payload[j] = (uint8_t)(pick(3) ? 0 : pick(256));
		if (master_send_raw(m, pick(VHOST_REQUESTS), pick(8) ? size : pick(1 << 20),
				    payload, size, &m->memory, (int)pick(3)))
			return;
	}
	kick_queues(m);
}

/* Random words in rings that are in use. */
static void attack_random_rings(struct master *m)
{
	uint8_t *bytes = (uint8_t *)m->queues;

	if (master_start(m))
		return;
	for (int i = 0; i < 20000; i++) {
		bytes[pick(sizeof(*m->queues) * MASTER_QUEUES)] = (uint8_t)pick(256);
		if (!pick(1000))
			usleep(1000);
	}
	usleep(PATIENCE);
}

/* --- */

static const struct {
	const char *name;
	void (*run)(struct master *m);
} attacks[] = {
	{"truncated_table", attack_truncated_table},
	{"empty_table", attack_empty_table},
	{"truncated_later", attack_truncated_later},
	{"huge_region", attack_huge_region},
	{"many_regions", attack_many_regions},
	{"strange_files", attack_strange_files},
	{"no_descriptors", attack_no_descriptors},
	{"many_descriptors", attack_many_descriptors},
	{"ring_addresses", attack_ring_addresses},
	{"queue_numbers", attack_queue_numbers},
	{"wrong_order", attack_wrong_order},
	{"garbage_index", attack_garbage_index},
	{"loops", attack_loops},
	{"descriptor_addresses", attack_descriptor_addresses},
	{"sizes", attack_sizes},
	{"half", attack_half},
	{"random", attack_random},
	{"random_rings", attack_random_rings},
};

#define ATTACKS (sizeof(attacks) / sizeof(attacks[0]))

static int carry_out(const char *path, size_t i)
{
	struct master m;
	int err = master_open(&m, path);

	if (!err)
		attacks[i].run(&m);
	master_close(&m);
	return err ? 2 : 0;
}

static int carry_out_named(const char *path, const char *name)
{
	for (size_t i = 0; i < ATTACKS; i++)
		if (!strcmp(attacks[i].name, name))
			return carry_out(path, i);
	fprintf(stderr, "no attack %s\n", name);
	return 1;
}

/* Attacks in any order; the port's process may be absent for some seconds between two of them. */
static int soak(const char *path, long seconds, uint64_t seed)
{
	const time_t end = time(NULL) + seconds;
	unsigned int met = 0, absent = 0;

	rand_state = (struct rand){seed};
	while (time(NULL) < end) {
		if (!carry_out(path, pick(ATTACKS)))
			met++;
		else if (!usleep(100000))
			absent++;
	}
	printf("%u attacks, %u times nobody listened\n", met, absent);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[2], "soak"))
		return soak(argv[1], atol(argv[3]), strtoull(argv[4], NULL, 10));
	if (argc == 3)
		return carry_out_named(argv[1], argv[2]);
	for (size_t i = 0; i < ATTACKS; i++)
		puts(attacks[i].name);
	return 0;
}
