/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process's part of a packet port: its memory, its descriptors and its interrupt. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/packet_ring.h"
#include "packet/place_fd.h"
#include "packet/port_private.h"

/* Most blocks of a ring that a process maps. */
#define RING_BLOCKS_MAX 4096

static uint64_t ring_bytes(const struct packet_port *port)
{
	return (uint64_t)port->ring.blocks * PACKET_PORT_RING_BLOCK_SIZE;
}

static bool is_ring(const struct packet_port_ring *ring)
{
	return ring->frame_size >= packet_ring_frame_size(ETH_MIN_MTU) &&
	       ring->frame_size <= PACKET_PORT_RING_BLOCK_SIZE && ring->blocks &&
	       ring->blocks <= RING_BLOCKS_MAX;
}

static int make_ring(int fd, const struct packet_port_ring *ring)
{
	struct tpacket_req request = {
		.tp_block_size = PACKET_PORT_RING_BLOCK_SIZE,
		.tp_block_nr = ring->blocks,
		.tp_frame_size = ring->frame_size,
	};

	if (!is_ring(ring))
		return -EPROTO;
	request.tp_frame_nr = packet_ring_frames(ring);
	return setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) ? -errno : 0;
}

static int map_ring(struct packet_port *port, const struct packet_port_ring *ring)
{
	port->ring = *ring;
	port->per_block = packet_ring_per_block(ring);
	port->frames = packet_ring_frames(ring);
	port->memory = mmap(NULL, ring_bytes(port), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, port->fd, 0);
	return port->memory == MAP_FAILED ? -errno : 0;
}

static int take_error(int fd)
{
	int error = 0;
	socklen_t length = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) ? 0 : error;
}

static int bind_protocol(int fd, uint16_t protocol)
{
	struct sockaddr_ll address = {0};
	socklen_t length = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &length))
		return -errno;
	address.sll_protocol = htons(protocol);
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/*
 * Binds the socket once more if its interface was down. Linux detaches the socket from its
 * interface while it makes the ring, and attaches it again only if the interface was up before
 * (packet_set_ring in net/packet/af_packet.c). If the interface comes up meanwhile, the socket
 * would never receive a frame. The socket's error tells that the interface was down. Then the
 * socket gets another protocol and its own one again, because bind(2) attaches the socket only if
 * the protocol changes.
 */
static int attach_again(int fd)
{
	if (take_error(fd) != ENETDOWN)
		return 0;
	return bind_protocol(fd, ETH_P_LOOPBACK) ?: bind_protocol(fd, ETH_P_ALL);
}

static void close_fds(const struct packet_port *port)
{
	if (port->interrupt >= 0)
		close(port->interrupt);
	if (port->fd >= 0)
		close(port->fd);
}

static int make_interrupt(struct packet_port *port)
{
	struct epoll_event masked = {.events = EPOLLONESHOT};

	port->interrupt = packet_place_fd(epoll_create1(EPOLL_CLOEXEC));
	if (port->interrupt < 0 || epoll_ctl(port->interrupt, EPOLL_CTL_ADD, port->fd, &masked))
		return -errno;
	return 0;
}

static bool has_vnet_headers(int fd)
{
	int on = 0;
	socklen_t length = sizeof(on);

	return !getsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, &length) && on;
}

int packet_port_open(int fd, const struct packet_port_ring *ring, struct packet_port **port)
{
	struct packet_port *new = malloc(sizeof(*new));
	int rc;

	if (!new) {
		close(fd);
		return -ENOMEM;
	}
	*new = (struct packet_port){.fd = fd, .interrupt = -1};
	rc = make_interrupt(new) ?: make_ring(fd, ring) ?: attach_again(fd) ?: map_ring(new, ring);
	if (!rc) {
		new->vnet = has_vnet_headers(fd);
		if (new->vnet)
			new->gso = gso_packet_create(&new->received);
		*port = new;
		return 0;
	}
	close_fds(new);
	free(new);
	return rc;
}

void packet_port_close(struct packet_port *port)
{
	if (!port)
		return;
	munmap(port->memory, ring_bytes(port));
	close_fds(port);
	gso_packet_destroy(&port->received);
	free(port);
}

void packet_port_isolate(struct packet_port *port)
{
	if (!port)
		return;
	mmap(port->memory, ring_bytes(port), PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	close_fds(port);
	port->fd = port->interrupt = -1;
}

int packet_port_fd(const struct packet_port *port)
{
	return port->fd;
}

bool packet_port_gso(const struct packet_port *port)
{
	return port->gso;
}

/* --- The interrupt */

int packet_port_irq_fd(const struct packet_port *port)
{
	return port->interrupt;
}

/* epoll_wait disarms the descriptor (EPOLLONESHOT). */
void packet_port_irq_read(struct packet_port *port)
{
	struct epoll_event event;

	if (epoll_wait(port->interrupt, &event, 1, 0) == 1 && event.events & EPOLLERR)
		(void)take_error(port->fd);
}

static void set_interrupt(const struct packet_port *port, uint32_t events)
{
	struct epoll_event event = {.events = events | EPOLLONESHOT};

	epoll_ctl(port->interrupt, EPOLL_CTL_MOD, port->fd, &event);
}

void packet_port_irq_mask(struct packet_port *port)
{
	set_interrupt(port, 0);
}

bool packet_port_irq_unmask(struct packet_port *port)
{
	set_interrupt(port, EPOLLIN);
	return packet_port_has_frame(port) || port->received.next < port->received.count;
}
