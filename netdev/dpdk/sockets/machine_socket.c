/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/sockets/machine_socket.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpdk/sockets/packet_filter.h"
#include "packet/packet_socket.h"

/* Packets of one system call. */
#define BURST 16
/* Limit of the socket's queue, bytes; the kernel doubles it for its own structures. */
#define QUEUE_BYTES (4 << 20)

struct machine_packets {
	struct mmsghdr messages[BURST];
	struct iovec parts[BURST][2];
	struct virtio_net_hdr vnets[BURST];
	_Alignas(
		struct cmsghdr) uint8_t controls[BURST][CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	uint32_t n, next; /* packets of the last recvmmsg, and the first of them that was not cut
			     into frames yet */
	struct segmenter current;
	uint8_t data[BURST][SEGMENTER_PACKET_MAX];
	uint8_t frames[2 * SEGMENTER_FRAME_MAX];
};

int machine_socket_open(struct machine_socket *s)
{
	*s = MACHINE_SOCKET_CLOSED;
	s->fd = packet_socket_create();
	if (s->fd < 0)
		return s->fd;
	packet_socket_widen_queue(s->fd, QUEUE_BYTES);
	if (!packet_socket_set(s->fd, PACKET_VNET_HDR, 1) &&
	    !packet_socket_set(s->fd, PACKET_AUXDATA, 1))
		return 0;
	machine_socket_close(s);
	return -EOPNOTSUPP;
}

void machine_socket_close(struct machine_socket *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->packets);
	*s = MACHINE_SOCKET_CLOSED;
}

/* --- Receiving */

static void prepare_messages(struct machine_packets *packets)
{
	for (uint32_t i = 0; i < BURST; i++) {
		packets->parts[i][0] =
			(struct iovec){&packets->vnets[i], sizeof(packets->vnets[i])};
		packets->parts[i][1] = (struct iovec){packets->data[i], sizeof(packets->data[i])};
		packets->messages[i].msg_hdr = (struct msghdr){
			.msg_iov = packets->parts[i],
			.msg_iovlen = 2,
			.msg_control = packets->controls[i],
			.msg_controllen = sizeof(packets->controls[i]),
		};
	}
}

int machine_socket_disable(struct machine_socket *s)
{
	s->on = s->drained = false;
	return s->packets ? packet_filter_nothing(s->fd) : 0;
}

int machine_socket_enable(struct machine_socket *s, unsigned int ifindex, bool xdp,
			  const struct packet_filter_macs *host)
{
	if (s->fd < 0)
		return 0;
	s->on = true;
	s->drained = false;
	if (!s->packets) {
		s->packets = calloc(1, sizeof(*s->packets));
		if (!s->packets)
			return -ENOMEM;
		prepare_messages(s->packets);
	}
	return packet_filter_other_macs(s->fd, xdp, host) ?: packet_socket_bind(s->fd, ifindex);
}

static bool start_packet(struct machine_packets *packets, uint32_t i)
{
	struct mmsghdr *message = &packets->messages[i];
	uint16_t tci;
	bool tagged = packet_socket_find_tag(&message->msg_hdr, &tci);

	return !(message->msg_hdr.msg_flags & MSG_TRUNC) &&
	       message->msg_len > sizeof(packets->vnets[i]) &&
	       segmenter_start(&packets->current, &packets->vnets[i], tagged ? &tci : NULL,
			       packets->data[i],
			       message->msg_len - (uint32_t)sizeof(packets->vnets[i]));
}

/*
 * Receives the next packets. False: none waits, or BURST calls have failed. recvmmsg() first
 * returns a pending error of the socket (the interface went down), then packets. EINVAL: the kernel
 * has dropped a packet that a virtio-net header cannot describe.
 */
static bool receive_packets(struct machine_socket *s)
{
	struct machine_packets *packets = s->packets;
	int n = -1;

	packets->n = packets->next = 0;
	for (int attempts = 0; n < 0 && attempts < BURST; attempts++) {
		for (uint32_t i = 0; i < BURST; i++)
			packets->messages[i].msg_hdr.msg_controllen = sizeof(packets->controls[i]);
		n = recvmmsg(s->fd, packets->messages, BURST, MSG_DONTWAIT, NULL);
		if (n < 0 && errno == EAGAIN) {
			s->drained = !s->on;
			return false;
		}
		s->bad += n < 0 && errno == EINVAL;
	}
	packets->n = n < 0 ? 0 : (uint32_t)n;
	return n > 0;
}

/* Makes the next good packet the current one. False: no packet waits. */
static bool next_packet(struct machine_socket *s)
{
	struct machine_packets *packets = s->packets;

	do {
		while (packets->next < packets->n) {
			if (start_packet(packets, packets->next++))
				return true;
			s->bad++;
		}
	} while (receive_packets(s));
	return false;
}

uint32_t machine_socket_rx(struct machine_socket *s, struct netdev_frame *frames, uint32_t n)
{
	struct machine_packets *packets = s->packets;
	uint32_t count = 0, used = 0, len;

	if (!packets || s->drained)
		return 0;
	while (count < n && (packets->current.packet || next_packet(s))) {
		len = segmenter_next(&packets->current, packets->frames + used,
				     (uint32_t)sizeof(packets->frames) - used);
		if (!len)
			break;
		frames[count++] = (struct netdev_frame){
			.data = packets->frames + used, .len = len, .wire_len = len};
		used += len;
	}
	return count;
}

uint64_t machine_socket_missed(struct machine_socket *s)
{
	if (s->packets)
		s->missed += packet_socket_read_drops(s->fd);
	return s->missed;
}
