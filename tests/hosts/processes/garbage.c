/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that destroys its own direct uplink: it writes random bytes into the ring of its packet
 * socket, and sends frames of random bytes, until its standard input ends. Prints "writes" when it
 * has begun. direct_uplink.py runs it as root, with the run directory.
 */
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netdev/packet_port.h>

#include "raw.h"
#include "require.h"

#define FRAME_MAX 1500
#define BURST     32

static uint64_t random_state = 1;

static uint8_t random_byte(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint8_t)(random_state >> 56);
}

static void fill(uint8_t *at, size_t size)
{
	for (size_t i = 0; i < size; i++)
		at[i] = random_byte();
}

/* The mapped ring: the only memory of the process whose file is a socket. */
static uint8_t *find_ring(size_t *size)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long begin, end;
	uint8_t *ring = NULL;
	char line[512];

	require(maps);
	while (!ring && fgets(line, sizeof(line), maps))
		if (strstr(line, "socket:") && sscanf(line, "%lx-%lx", &begin, &end) == 2) {
			ring = (uint8_t *)begin; /* NOLINT(performance-no-int-to-ptr) */
			*size = end - begin;
		}
	fclose(maps);
	require(ring);
	return ring;
}

/* Every other frame begins as a RoCEv1 or RoCEv2 packet to the peer does. */
static void send_garbage(struct packet_port *port, const uint8_t mac[6])
{
	static uint8_t frames[BURST][FRAME_MAX];
	struct packet_port_frame burst[BURST];
	uint32_t lost;

	for (uint32_t i = 0; i < BURST; i++) {
		const uint8_t type[] = {i % 4 ? 0x89 : 0x08, i % 4 ? 0x15 : 0x00};

		fill(frames[i], 200);
		if (i % 2)
			memcpy(frames[i], mac, 6);
		memcpy(frames[i] + 12, type, i % 2 ? sizeof(type) : 0);
		burst[i] = (struct packet_port_frame){frames[i], 14 + random_byte() * 4u, false};
	}
	packet_port_tx(port, burst, BURST, &lost);
}

static bool input_has_ended(void)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};

	return poll(&input, 1, 0) != 0;
}

int main(int argc, char **argv)
{
	struct packet_port_ring layout;
	struct vnic_attach_uplink answer;
	int uplinks[VNIC_UPLINK_SOCKETS];
	uint16_t blocks[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct packet_port *port;
	uint8_t mac[6], *ring;
	struct raw raw;
	size_t size;

	require(argc == 3);
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)strtoul(argv[2] + i * 3, NULL, 16);
	raw_open(&raw, argv[1]);
	require(vnic_driver_uplink(raw.drv, &answer, uplinks) == 1);
	layout = (struct packet_port_ring){answer.frame_size, answer.blocks};
	require(!packet_port_open(uplinks[0], &layout, &port));
	/* It also receives what is for others. */
	require(!packet_port_accept(packet_port_fd(port), blocks, 8));
	ring = find_ring(&size);
	puts("writes");
	fflush(stdout);
	for (size_t at = 0; !input_has_ended(); at = (at + FRAME_MAX) % (size - FRAME_MAX)) {
		fill(ring + at, FRAME_MAX);
		send_garbage(port, mac);
	}
	packet_port_close(port);
	raw_close(&raw);
	return 0;
}
