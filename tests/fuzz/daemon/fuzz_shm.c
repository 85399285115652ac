/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile process of a vhost: uplink: the script sends frames from any place and of any length,
 * moves ring positions, and writes any word of the memory that it shares with urxed's port. The
 * port must hand out frames of a possible length, in memory of its own, and never more than exist.
 */
#include <netdev/shm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "script.h"

#define MTU       1500
#define FRAME_MAX (MTU + 18)
#define BURST     32
/* All of the header and both rings, with some slots behind. */
#define WRITABLE (16u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct lab {
	struct netdev *port;
	struct netdev_shm_fds fds;
	struct netdev_shm_peer *peer;
	uint8_t *memory; /* what the peer maps, for writes to any place */
	size_t size;
	uint8_t *buffers;
	uint64_t now;
	uint32_t sum; /* of all received bytes, so that each is read */
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void connect_peer(struct lab *lab)
{
	size_t size;

	require(!netdev_shm_connect(lab->port, &lab->fds));
	require(!netdev_shm_attach(&lab->fds, &lab->peer));
	lab->buffers = netdev_shm_buffers(lab->peer, &size);
	lab->size = (size_t)lseek(lab->fds.memory, 0, SEEK_END);
	lab->memory = mmap(NULL, lab->size, PROT_READ | PROT_WRITE, MAP_SHARED, lab->fds.memory, 0);
	require(lab->memory != MAP_FAILED);
}

static void disconnect_peer(struct lab *lab)
{
	munmap(lab->memory, lab->size);
	netdev_shm_detach(lab->peer);
	netdev_shm_disconnect(lab->port);
}

static void receive_frames(struct lab *lab)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_rx(lab->port, lab->now, frames, BURST);

	require(n <= BURST);
	require(!n || netdev_shm_state(lab->port) == NETDEV_SHM_READY);
	for (uint32_t i = 0; i < n; i++) {
		require(frames[i].len && frames[i].len <= FRAME_MAX);
		require(frames[i].wire_len == frames[i].len);
		require(frames[i].data + frames[i].len <= lab->memory ||
			frames[i].data >= lab->memory + lab->size);
		for (uint32_t j = 0; j < frames[i].len; j++)
			lab->sum += frames[i].data[j];
	}
}

static void send_frames(struct lab *lab, uint32_t n, uint32_t len)
{
	static uint8_t data[FRAME_MAX + 64];
	struct netdev_frame frames[BURST];
	uint32_t i;

	for (i = 0; i < n; i++)
		frames[i] = (struct netdev_frame){data, len, len, 0};
	require(netdev_tx(lab->port, lab->now, frames, n) <= n);
}

/* `offset` is relative to the packet buffers and may be negative; no one reads there but the port.
 */
static void peer_sends(struct lab *lab, int32_t offset, uint32_t len)
{
	const uintptr_t at = (uintptr_t)lab->buffers + (uintptr_t)(intptr_t)offset;
	const struct netdev_frame frame = {(const uint8_t *)at, len, len, 0};

	netdev_shm_send(lab->peer, &frame, 1);
}

static void write_word(struct lab *lab, struct script *s)
{
	const uint32_t at = script_get16(s) % WRITABLE & ~3u, word = script_get32(s);

	memcpy(lab->memory + at, &word, sizeof(word));
}

static void peer_sends_many(struct lab *lab, uint32_t n)
{
	while (n--)
		peer_sends(lab, (int32_t)(64 * n), 64 + n);
}

static void step(struct lab *lab, struct script *s)
{
	struct netdev_frame frame;

	switch (script_get8(s) % 12) {
	case 0: receive_frames(lab); break;
	case 1:
		send_frames(lab, script_get8(s) % (BURST + 1), script_get16(s) % (FRAME_MAX + 64));
		break;
	case 2: peer_sends(lab, (int32_t)script_get32(s), script_get32(s)); break;
	case 3: peer_sends(lab, script_get16(s), script_get16(s)); break;
	case 4: netdev_shm_release(lab->peer, script_get16(s)); break;
	case 5: write_word(lab, s); break;
	case 6: netdev_shm_set_ready(lab->peer); break;
	case 7: netdev_wait_fd(lab->port); break;
	case 8: netdev_shm_arm(lab->peer); break;
	case 9: netdev_shm_receive(lab->peer, &frame, 1); break;
	case 10: peer_sends_many(lab, script_get8(s)); break;
	default: lab->now += script_get32(s); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t counters[NETDEV_COUNTER_COUNT];
	struct script script = {data, size};
	struct lab lab = {0};

	require(!netdev_shm_create(MTU, &lab.port));
	connect_peer(&lab);
	while (script.left) {
		step(&lab, &script);
		netdev_counters(lab.port, counters);
	}
	disconnect_peer(&lab);
	/* Whatever the first peer did, the next one gets a port that works. */
	connect_peer(&lab);
	netdev_shm_set_ready(lab.peer);
	memset(lab.buffers, 1, 64);
	netdev_shm_send(lab.peer, &(struct netdev_frame){lab.buffers, 64, 64, 0}, 1);
	lab.sum = 0;
	receive_frames(&lab);
	require(lab.sum == 64);
	disconnect_peer(&lab);
	netdev_close(lab.port);
	return 0;
}
