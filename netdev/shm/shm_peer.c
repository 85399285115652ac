/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The peer's side of a shared-memory port: the process of a vhost-user port, or a device process
 * (urxe vm). */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/shm_layout.h"

struct netdev_shm_peer {
	struct netdev_shm_fds fds;
	struct shm_memory *memory;
	size_t size;
};

/* Whether the file is a port's. Its seal forbids to shorten it, so an access raises no SIGBUS. */
static bool is_port_file(int fd, const struct stat *file)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && file->st_size <= UINT32_MAX &&
	       (size_t)file->st_size >= sizeof(struct shm_memory);
}

static bool layout_valid(const struct shm_memory *memory, size_t size)
{
	return memory->size == size && memory->slots >= sizeof(*memory) &&
	       memory->stride <= memory->buffers / NETDEV_SHM_DEPTH &&
	       memory->slots <= memory->buffers - memory->stride * NETDEV_SHM_DEPTH &&
	       memory->buffers <= size;
}

static int map_memory(struct netdev_shm_peer *peer)
{
	const int fd = peer->fds.memory;
	struct stat file;
	void *memory;

	if (fstat(fd, &file))
		return -errno;
	if (!is_port_file(fd, &file))
		return -EPROTO;
	peer->size = (size_t)file.st_size;
	memory = mmap(NULL, peer->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	peer->memory = memory;
	if (layout_valid(memory, peer->size))
		return 0;
	munmap(memory, peer->size);
	return -EPROTO;
}

int netdev_shm_attach(const struct netdev_shm_fds *fds, struct netdev_shm_peer **peer)
{
	struct netdev_shm_peer *new = calloc(1, sizeof(*new));
	int rc;

	if (!new)
		return -ENOMEM;
	new->fds = *fds;
	rc = map_memory(new);
	if (rc)
		free(new);
	else
		*peer = new;
	return rc;
}

void netdev_shm_detach(struct netdev_shm_peer *peer)
{
	munmap(peer->memory, peer->size);
	free(peer);
}

uint32_t netdev_shm_mtu(const struct netdev_shm_peer *peer)
{
	return peer->memory->mtu;
}

void *netdev_shm_buffers(const struct netdev_shm_peer *peer, size_t *size)
{
	*size = peer->size - peer->memory->buffers;
	return (uint8_t *)peer->memory + peer->memory->buffers;
}

void netdev_shm_set_counters(struct netdev_shm_peer *peer,
			     const uint64_t counters[NETDEV_COUNTER_COUNT])
{
	for (uint32_t i = 0; i < NETDEV_COUNTER_COUNT; i++)
		__atomic_store_n(&peer->memory->counters[i], counters[i], __ATOMIC_RELAXED);
}

static void wake_port(struct netdev_shm_peer *peer)
{
	eventfd_write(peer->fds.wake, 1);
}

void netdev_shm_set_link(struct netdev_shm_peer *peer, bool up)
{
	shm_store(&peer->memory->link_down, !up);
}

void netdev_shm_set_ready(struct netdev_shm_peer *peer)
{
	shm_store(&peer->memory->ready, 1);
	wake_port(peer);
}

/* --- To the port */

uint32_t netdev_shm_room(const struct netdev_shm_peer *peer)
{
	const struct shm_ring *ring = &peer->memory->to_port;

	return NETDEV_SHM_DEPTH - (ring->head - shm_load(&ring->tail));
}

void netdev_shm_send(struct netdev_shm_peer *peer, const struct netdev_frame *frames, uint32_t n)
{
	struct shm_ring *ring = &peer->memory->to_port;

	for (uint32_t i = 0; i < n; i++)
		shm_write_entry(ring, ring->head + i,
				(uint32_t)(frames[i].data - (const uint8_t *)peer->memory),
				frames[i].len);
	shm_store(&ring->head, ring->head + n);
	if (n && shm_take_waiting(ring))
		wake_port(peer);
}

uint32_t netdev_shm_released(const struct netdev_shm_peer *peer)
{
	return shm_load(&peer->memory->to_port.tail);
}

/* --- From the port */

uint32_t netdev_shm_receive(struct netdev_shm_peer *peer, struct netdev_frame *frames, uint32_t n)
{
	const struct shm_ring *ring = &peer->memory->to_peer;
	uint32_t ready = shm_load(&ring->head) - ring->tail;

	if (n > ready)
		n = ready;
	for (uint32_t i = 0; i < n; i++) {
		const struct shm_entry entry = shm_read_entry(ring, ring->tail + i);

		frames[i] = (struct netdev_frame){(uint8_t *)peer->memory + entry.offset, entry.len,
						  entry.len, 0};
	}
	return n;
}

void netdev_shm_release(struct netdev_shm_peer *peer, uint32_t n)
{
	struct shm_ring *ring = &peer->memory->to_peer;

	shm_store(&ring->tail, ring->tail + n);
}

/* --- Sleeping */

bool netdev_shm_arm(struct netdev_shm_peer *peer)
{
	struct shm_ring *ring = &peer->memory->to_peer;

	shm_set_waiting(ring);
	return shm_load(&ring->head) != ring->tail;
}

bool netdev_shm_reset(struct netdev_shm_peer *peer)
{
	char bytes[64];
	ssize_t n;

	do
		n = read(peer->fds.kick, bytes, sizeof(bytes));
	while (n == (ssize_t)sizeof(bytes));
	return n > 0 || (n < 0 && errno == EAGAIN);
}
