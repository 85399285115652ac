/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The packet ports of one process on several interfaces, as one. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <netdev/packet_port.h>

#include "packet/place_fd.h"

struct packet_group {
	struct packet_port *ports[PACKET_GROUP_MAX];
	uint32_t n;
	uint32_t turn; /* the port from which packet_group_rx receives next */
	int interrupt; /* epoll set of the ports' interrupts; with one port that port's own */
};

/* --- Opening and closing */

static int watch_ports(struct packet_group *group)
{
	struct epoll_event readable = {.events = EPOLLIN};

	if (group->n == 1) {
		group->interrupt = packet_port_irq_fd(group->ports[0]);
		return 0;
	}
	group->interrupt = packet_place_fd(epoll_create1(EPOLL_CLOEXEC));
	if (group->interrupt < 0)
		return -errno;
	for (uint32_t i = 0; i < group->n; i++)
		if (epoll_ctl(group->interrupt, EPOLL_CTL_ADD, packet_port_irq_fd(group->ports[i]),
			      &readable))
			return -errno;
	return 0;
}

/* Opens a port on each descriptor; returns 0 or a negative errno value. The ports own the
 * descriptors; on failure those without a port are closed. */
static int open_ports(struct packet_group *group, const int *fds, uint32_t n,
		      const struct packet_port_ring *ring)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++) {
		rc = packet_port_open(fds[i], ring, &group->ports[i]);
		group->n += !rc;
	}
	for (; i < n; i++)
		close(fds[i]);
	return rc;
}

int packet_group_open(const int *fds, uint32_t n, const struct packet_port_ring *ring,
		      struct packet_group **group)
{
	struct packet_group *new = malloc(sizeof(*new));
	int rc;

	if (!new) {
		for (uint32_t i = 0; i < n; i++)
			close(fds[i]);
		return -ENOMEM;
	}
	*new = (struct packet_group){.interrupt = -1};
	rc = open_ports(new, fds, n, ring) ?: watch_ports(new);
	if (rc)
		packet_group_close(new);
	else
		*group = new;
	return rc;
}

static void close_interrupt(struct packet_group *group)
{
	if (group->n > 1 && group->interrupt >= 0)
		close(group->interrupt);
	group->interrupt = -1;
}

void packet_group_close(struct packet_group *group)
{
	if (!group)
		return;
	close_interrupt(group);
	for (uint32_t i = 0; i < group->n; i++)
		packet_port_close(group->ports[i]);
	free(group);
}

void packet_group_isolate(struct packet_group *group)
{
	if (!group)
		return;
	close_interrupt(group);
	for (uint32_t i = 0; i < group->n; i++)
		packet_port_isolate(group->ports[i]);
}

/* --- Use */

uint32_t packet_group_size(const struct packet_group *group)
{
	return group->n;
}

int packet_group_accept(const struct packet_group *group, const uint16_t *blocks, uint32_t n)
{
	int rc = 0;

	for (uint32_t i = 0; i < group->n && !rc; i++)
		rc = packet_port_accept(packet_port_fd(group->ports[i]), blocks, n);
	return rc;
}

bool packet_group_gso(const struct packet_group *group)
{
	for (uint32_t i = 0; i < group->n; i++)
		if (!packet_port_gso(group->ports[i]))
			return false;
	return true;
}

int packet_group_irq_fd(const struct packet_group *group)
{
	return group->interrupt;
}

void packet_group_irq_read(struct packet_group *group)
{
	for (uint32_t i = 0; i < group->n; i++)
		packet_port_irq_read(group->ports[i]);
	/* An interrupt masks the whole group, but its port has masked only itself. */
	if (group->n > 1)
		packet_group_irq_mask(group);
}

void packet_group_irq_mask(struct packet_group *group)
{
	for (uint32_t i = 0; i < group->n; i++)
		packet_port_irq_mask(group->ports[i]);
}

bool packet_group_irq_unmask(struct packet_group *group)
{
	bool waiting = false;

	for (uint32_t i = 0; i < group->n; i++)
		waiting |= packet_port_irq_unmask(group->ports[i]);
	return waiting;
}

uint32_t packet_group_rx(struct packet_group *group, struct packet_port_frame *frames, uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < group->n && !count; i++) {
		count = packet_port_rx(group->ports[group->turn], frames, n);
		group->turn = group->turn + 1 == group->n ? 0 : group->turn + 1;
	}
	return count;
}

uint32_t packet_group_rx_member(const struct packet_group *group)
{
	return (group->turn ? group->turn : group->n) - 1;
}

void packet_group_release(struct packet_group *group)
{
	for (uint32_t i = 0; i < group->n; i++)
		packet_port_release(group->ports[i]);
}

uint32_t packet_group_tx(struct packet_group *group, uint32_t member,
			 const struct packet_port_frame *frames, uint32_t n, uint32_t *lost)
{
	return packet_port_tx(group->ports[member], frames, n, lost);
}

uint32_t packet_group_read_drops(struct packet_group *group)
{
	uint32_t drops = 0;

	for (uint32_t i = 0; i < group->n; i++)
		drops += packet_port_read_drops(group->ports[i]);
	return drops;
}

enum packet_ring_state packet_group_ring_state(struct packet_group *group)
{
	enum packet_ring_state worst = PACKET_RING_RUNS, state;

	for (uint32_t i = 0; i < group->n; i++) {
		state = packet_port_ring_state(group->ports[i]);
		if (state > worst)
			worst = state;
	}
	return worst;
}

uint32_t packet_group_choose(uint32_t flow, uint32_t n, uint32_t carriers)
{
	const uint32_t hash = flow / n * 0x9e3779b9u;
	const uint32_t i = (flow % n + (uint32_t)(((uint64_t)hash * n) >> 32)) % n;
	uint32_t skip;

	if (!carriers || carriers >> i & 1)
		return i;
	skip = (hash & 0xffff) % (uint32_t)__builtin_popcount(carriers);
	while (skip--)
		carriers &= carriers - 1;
	return (uint32_t)__builtin_ctz(carriers);
}
