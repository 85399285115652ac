/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving by a packet port: from the places of its ring, and long packets from its queue. */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "packet/packet_ring.h"
#include "packet/packet_socket.h"
#include "packet/port_private.h"

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

static struct packet_tag read_tag(const struct tpacket2_hdr *header)
{
	const uint16_t tpid =
		header->tp_status & TP_STATUS_VLAN_TPID_VALID ? header->tp_vlan_tpid : ETH_P_8021Q;
	const uint16_t tci = header->tp_vlan_tci;

	return (struct packet_tag){
		.present = header->tp_status & TP_STATUS_VLAN_VALID,
		.bytes = {tpid >> 8, tpid & 0xff, tci >> 8, tci & 0xff},
	};
}

/* Inserts the tag behind the frame's MAC addresses. The memory in front of the frame has room for
 * the tag. */
static void insert_tag(struct packet_port_frame *frame, const struct packet_tag *tag)
{
	if (!tag->present)
		return;
	frame->data -= PACKET_RING_VLAN;
	frame->len += PACKET_RING_VLAN;
	memmove(frame->data, frame->data + PACKET_RING_VLAN, 2 * ETH_ALEN);
	memcpy(frame->data + 2 * ETH_ALEN, tag->bytes, sizeof(tag->bytes));
}

/* What the next place of the ring holds. */
struct place {
	struct packet_port_frame frame; /* the packet, or the part of it that fits the place */
	struct packet_tag tag;
	struct virtio_net_hdr vnet;
	uint32_t len; /* of the whole packet without the tag, bytes */
	bool queued;  /* the whole packet is in the socket's queue */
};

/* Reads the next place of the ring, and checks a copy of its header. The kernel wrote the header,
 * but another process with the descriptor could write to it, too. */
static void read_place(const struct packet_port *port, struct place *place)
{
	struct tpacket2_hdr *header = place_at(port, port->head);
	const struct tpacket2_hdr copy = *header;

	*place = (struct place){
		.frame = {.data = (uint8_t *)header},
		.len = copy.tp_len,
		.queued = copy.tp_status & TP_STATUS_COPY,
	};
	if (copy.tp_mac < sizeof(copy) + PACKET_RING_VLAN + sizeof(place->vnet) ||
	    (uint32_t)copy.tp_mac + copy.tp_snaplen > port->ring.frame_size ||
	    copy.tp_snaplen < ETH_HLEN)
		return; /* a frame of no bytes, which the receiver drops */
	place->frame.data += copy.tp_mac;
	place->frame.len = copy.tp_snaplen;
	if (port->vnet)
		memcpy(&place->vnet, place->frame.data - sizeof(place->vnet), sizeof(place->vnet));
	place->tag = read_tag(&copy);
}

/* Whether the place holds a single frame, which the caller gets as it is. */
static bool is_frame(const struct place *place)
{
	return !place->queued && place->vnet.gso_type == VIRTIO_NET_HDR_GSO_NONE;
}

static bool is_filled(const struct packet_port *port, uint32_t at)
{
	return __atomic_load_n(&place_at(port, at)->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}

bool packet_port_has_frame(const struct packet_port *port)
{
	return is_filled(port, port->head);
}

/* --- GSO packets: in the place, or, if they are longer, in the socket's queue */

/*
 * Receives one message. If the socket has a pending error (the interface went down), the first call
 * returns and clears the error, and only the second call takes the message. A cancelled thread must
 * not end here: it has locks of its process.
 */
static ssize_t receive_message(const struct packet_port *port, struct msghdr *message)
{
	ssize_t got;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	got = recvmsg(port->fd, message, MSG_DONTWAIT | MSG_TRUNC);
	if (got < 0 && errno != EAGAIN)
		got = recvmsg(port->fd, message, MSG_DONTWAIT | MSG_TRUNC);
	pthread_setcancelstate(cancel, NULL);
	return got;
}

/* Takes the packet out of the queue. False: it was dropped, as it is not `wanted` or not whole. */
static bool read_queue(const struct packet_port *port, bool wanted, uint32_t len)
{
	struct virtio_net_hdr vnet;
	uint8_t headers[GSO_HEADERS];
	struct iovec parts[2 + GSO_SEGMENTS] = {{&vnet, sizeof(vnet)},
						{headers, port->received.headers_len}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1};
	int saved = errno;
	ssize_t got;

	if (wanted)
		message.msg_iovlen = 2 + gso_packet_parts(&port->received, parts + 2);
	got = receive_message(port, &message);
	errno = saved;
	return wanted && got == (ssize_t)(sizeof(vnet) + len);
}

/* Copies the packet out of its place. False: it was dropped, as it is not `wanted` or not whole. */
static bool copy_place(const struct packet_port *port, bool wanted, const struct place *place)
{
	const uint8_t *from = place->frame.data + port->received.headers_len;
	struct iovec parts[GSO_SEGMENTS];
	uint32_t n;

	if (!wanted || place->len > place->frame.len)
		return false;
	n = gso_packet_parts(&port->received, parts);
	for (uint32_t i = 0; i < n; from += parts[i++].iov_len)
		memcpy(parts[i].iov_base, from, parts[i].iov_len);
	return true;
}

/*
 * Cuts the packet of the next place into frames. The caller releases nothing if it gets no frame,
 * so a dropped packet's place goes back to the ring here.
 */
static void receive_packet(struct packet_port *port, const struct place *place)
{
	bool wanted = gso_packet_start(&port->received, &place->vnet, place->frame.data,
				       place->frame.len, place->len);

	port->head = after(port, port->head);
	if (place->queued ? read_queue(port, wanted, place->len)
			  : copy_place(port, wanted, place)) {
		gso_packet_finish(&port->received);
		port->received_tag = place->tag;
	} else {
		port->dropped++;
		packet_port_release(port);
	}
}

static uint32_t take_segments(struct packet_port *port, struct packet_port_frame *frames,
			      uint32_t n)
{
	uint32_t count = 0;

	while (count < n && gso_packet_next(&port->received, &frames[count]))
		insert_tag(&frames[count++], &port->received_tag);
	return count;
}

/* --- Frames */

/* Whether the next place has a frame that the caller may get. One place is always kept back: if the
 * caller had all places, `head` would equal `tail`, which also means that it has none. */
static bool has_next(const struct packet_port *port)
{
	return after(port, port->head) != port->tail && packet_port_has_frame(port);
}

/* Returns up to n frames. *packet: a GSO packet is next, and is in *place. */
static uint32_t take_frames(struct packet_port *port, struct packet_port_frame *frames, uint32_t n,
			    struct place *place, bool *packet)
{
	uint32_t count = 0;

	*packet = false;
	while (count < n && has_next(port)) {
		read_place(port, place);
		if (!is_frame(place)) {
			*packet = true;
			break;
		}
		frames[count] = place->frame;
		insert_tag(&frames[count++], &place->tag);
		port->head = after(port, port->head);
	}
	return count;
}

uint32_t packet_port_rx(struct packet_port *port, struct packet_port_frame *frames, uint32_t n)
{
	uint32_t count = take_segments(port, frames, n);
	bool packet = true;
	struct place place;

	while (!count && packet) {
		count = take_frames(port, frames, n, &place, &packet);
		if (count || !packet)
			break;
		receive_packet(port, &place);
		count = take_segments(port, frames, n);
	}
	return count;
}

void packet_port_release(struct packet_port *port)
{
	port->moved |= port->tail != port->head;
	for (; port->tail != port->head; port->tail = after(port, port->tail))
		__atomic_store_n(&place_at(port, port->tail)->tp_status, TP_STATUS_KERNEL,
				 __ATOMIC_RELEASE);
}

/* --- Drops */

/* Returns the place that the kernel fills next, the first empty one; in a full ring, `head`. */
static uint32_t next_empty(const struct packet_port *port)
{
	uint32_t at = port->head;

	for (uint32_t n = 0; n < port->frames && is_filled(port, at); n++)
		at = after(port, at);
	return at;
}

/* Reads and clears the kernel's counter of drops. After drops, notes the place at which they may
 * have stopped the ring. */
static uint32_t count_kernel_drops(struct packet_port *port)
{
	const uint32_t drops = packet_socket_read_drops(port->fd);

	port->dropped += drops;
	if (drops) {
		port->suspect = true;
		port->suspect_place = next_empty(port);
	}
	return drops;
}

uint32_t packet_port_read_drops(struct packet_port *port)
{
	uint32_t dropped;

	count_kernel_drops(port);
	dropped = port->dropped;
	port->dropped = 0;
	return dropped;
}

/*
 * A ring stops as follows: the kernel (tpacket_rcv) reserves the next place for a packet, drops the
 * packet because a virtio-net header cannot describe it, and keeps the place reserved. From then on
 * the kernel drops all packets. The caller may still get the frames before that place, but none
 * behind it.
 */
enum packet_ring_state packet_port_ring_state(struct packet_port *port)
{
	const uint32_t drops = count_kernel_drops(port);
	const bool moved = port->moved;

	port->moved = false;
	if (!port->vnet || packet_port_has_frame(port))
		return PACKET_RING_RUNS;
	port->suspect &= port->head == port->suspect_place;
	if (!port->suspect || moved)
		return PACKET_RING_RUNS;
	return drops ? PACKET_RING_STOPPED : PACKET_RING_SUSPECT;
}
