/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process's part of a packet port: its receive ring, and sending. */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netdev/packet_port.h>

#include "packet/ring.h"

/* Frames of one system call. */
#define TX_BURST 32

/* A process maps no more than this for a ring. */
#define RING_BLOCKS_MAX 4096

struct packet_port {
	int fd;
	int interrupt; /* epoll set of fd */
	struct packet_port_ring ring;
	uint32_t per_block, frames;
	uint8_t *memory;
	uint32_t head; /* place of the next frame */
	uint32_t tail; /* place of the oldest frame that was not released */
};

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

	port->interrupt = epoll_create1(EPOLL_CLOEXEC);
	if (port->interrupt < 0 || epoll_ctl(port->interrupt, EPOLL_CTL_ADD, port->fd, &masked))
		return -errno;
	return 0;
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
	rc = make_interrupt(new) ?: make_ring(fd, ring) ?: map_ring(new, ring);
	if (!rc) {
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

/* --- The interrupt */

int packet_port_irq_fd(const struct packet_port *port)
{
	return port->interrupt;
}

static void clear_error(const struct packet_port *port)
{
	int error;
	socklen_t length = sizeof(error);

	getsockopt(port->fd, SOL_SOCKET, SO_ERROR, &error, &length);
}

/* epoll_wait disarms the descriptor (EPOLLONESHOT). */
void packet_port_irq_read(struct packet_port *port)
{
	struct epoll_event event;

	if (epoll_wait(port->interrupt, &event, 1, 0) == 1 && event.events & EPOLLERR)
		clear_error(port);
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

/* --- Receiving */

static struct tpacket2_hdr *place_at(const struct packet_port *port, uint32_t at)
{
	return (struct tpacket2_hdr *)(port->memory +
				       (uint64_t)(at / port->per_block) *
					       PACKET_PORT_RING_BLOCK_SIZE +
				       (uint64_t)(at % port->per_block) * port->ring.frame_size);
}

static uint32_t after(const struct packet_port *port, uint32_t at)
{
	return at + 1 == port->frames ? 0 : at + 1;
}

/* Inserts the tag that the kernel has taken out; the place has room in front of the frame. */
static void insert_vlan(struct packet_port_frame *frame, const struct tpacket2_hdr *header)
{
	uint16_t tpid =
		header->tp_status & TP_STATUS_VLAN_TPID_VALID ? header->tp_vlan_tpid : ETH_P_8021Q;
	const uint8_t tag[PACKET_RING_VLAN] = {tpid >> 8, tpid & 0xff, header->tp_vlan_tci >> 8,
					       header->tp_vlan_tci & 0xff};

	frame->data -= PACKET_RING_VLAN;
	frame->len += PACKET_RING_VLAN;
	memmove(frame->data, frame->data + PACKET_RING_VLAN, 2 * ETH_ALEN);
	memcpy(frame->data + 2 * ETH_ALEN, tag, sizeof(tag));
}

/* The kernel wrote the header, but another process with the descriptor could write to it, too. */
static void read_place(const struct packet_port *port, struct tpacket2_hdr *header,
		       struct packet_port_frame *frame)
{
	const struct tpacket2_hdr copy = *header;

	*frame = (struct packet_port_frame){.data = (uint8_t *)header};
	if (copy.tp_mac < sizeof(copy) + PACKET_RING_VLAN ||
	    (uint32_t)copy.tp_mac + copy.tp_snaplen > port->ring.frame_size ||
	    copy.tp_snaplen < ETH_HLEN)
		return; /* a frame of no bytes, which the receiver drops */
	frame->data += copy.tp_mac;
	frame->len = copy.tp_snaplen;
	if (copy.tp_status & TP_STATUS_VLAN_VALID)
		insert_vlan(frame, &copy);
}

static bool has_frame(const struct packet_port *port)
{
	const struct tpacket2_hdr *next = place_at(port, port->head);

	return __atomic_load_n(&next->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}

uint32_t packet_port_rx(struct packet_port *port, struct packet_port_frame *frames, uint32_t n)
{
	uint32_t count = 0;

	/* One place stays free, so that a full ring of frames with the caller has another head. */
	while (count < n && after(port, port->head) != port->tail && has_frame(port)) {
		read_place(port, place_at(port, port->head), &frames[count++]);
		port->head = after(port, port->head);
	}
	return count;
}

bool packet_port_irq_unmask(struct packet_port *port)
{
	set_interrupt(port, EPOLLIN);
	return has_frame(port);
}

void packet_port_release(struct packet_port *port, uint32_t n)
{
	for (; n && port->tail != port->head; n--) {
		__atomic_store_n(&place_at(port, port->tail)->tp_status, TP_STATUS_KERNEL,
				 __ATOMIC_RELEASE);
		port->tail = after(port, port->tail);
	}
}

uint32_t packet_port_read_drops(struct packet_port *port)
{
	struct tpacket_stats stats = {0};
	socklen_t length = sizeof(stats);

	return getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length)
		       ? 0
		       : stats.tp_drops;
}

/* --- Sending */

/* Returns the number of frames sent, or a negative errno value; keeps errno, the program's. */
static int send_burst(const struct packet_port *port, const struct packet_port_frame *frames,
		      uint32_t n)
{
	struct mmsghdr messages[TX_BURST];
	struct iovec parts[TX_BURST];
	int saved = errno, sent;

	for (uint32_t i = 0; i < n; i++) {
		parts[i] = (struct iovec){frames[i].data, frames[i].len};
		messages[i] = (struct mmsghdr){
			.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1},
		};
	}
	sent = sendmmsg(port->fd, messages, n, MSG_DONTWAIT);
	if (sent < 0)
		sent = -errno;
	errno = saved;
	return sent;
}

/*
 * sendmmsg(2) reports an error only for its first message. ENOBUFS comes from the queueing
 * discipline, EAGAIN from the socket's own limit, which frames that leave make room in.
 */
uint32_t packet_port_tx(struct packet_port *port, const struct packet_port_frame *frames,
			uint32_t n, uint32_t *lost)
{
	uint32_t done = 0;

	*lost = 0;
	while (done < n) {
		uint32_t burst = n - done < TX_BURST ? n - done : TX_BURST;
		int sent = send_burst(port, frames + done, burst);

		if (sent > 0) {
			done += (uint32_t)sent;
			continue;
		}
		if (sent == -EAGAIN)
			break;
		done++;
		(*lost)++;
	}
	return done;
}
