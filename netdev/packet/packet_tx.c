/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sending by a packet port. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "packet/port_private.h"

static void add_part(struct packet_tx_burst *burst, void *data, uint32_t len)
{
	burst->parts[burst->n_parts++] = (struct iovec){data, len};
}

static void add_gso_packet(struct packet_tx_burst *burst, const struct packet_port_frame *frames,
			   uint32_t n)
{
	uint8_t *headers = burst->headers[burst->n];
	uint32_t len = gso_write_headers(frames, n, headers, &burst->vnets[burst->n]);

	add_part(burst, headers, len);
	for (uint32_t i = 0; i < n; i++)
		add_part(burst, frames[i].data + len, frames[i].len - len);
}

/* Adds the first frames as one message; returns their number. */
static uint32_t add_message(struct packet_port *port, const struct packet_port_frame *frames,
			    uint32_t n)
{
	struct packet_tx_burst *burst = &port->burst;
	struct iovec *parts = &burst->parts[burst->n_parts];
	uint32_t count = port->gso ? gso_count(frames, n) : 1;

	burst->vnets[burst->n] = (struct virtio_net_hdr){0};
	if (port->vnet)
		add_part(burst, &burst->vnets[burst->n], sizeof(burst->vnets[0]));
	if (count > 1)
		add_gso_packet(burst, frames, count);
	else
		add_part(burst, frames[0].data, frames[0].len);
	burst->messages[burst->n].msg_hdr = (struct msghdr){
		.msg_iov = parts, .msg_iovlen = (size_t)(&burst->parts[burst->n_parts] - parts)};
	burst->frames[burst->n++] = count;
	return count;
}

/*
 * Returns the number of messages sent, or a negative errno value; keeps errno, the program's. A
 * cancelled thread must not end here: it has locks of its process.
 */
static int send_packet_burst(const struct packet_port *port, struct packet_tx_burst *burst)
{
	int saved = errno, cancel, sent;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sent = sendmmsg(port->fd, burst->messages, burst->n, MSG_DONTWAIT);
	if (sent < 0)
		sent = -errno;
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return sent;
}

/*
 * Whether packet_port_tx has to send the frames again, one by one, because the kernel refused a GSO
 * packet: a kernel without UDP GSO returns EINVAL. Of the other errors, ENOBUFS comes from the
 * queueing discipline; EAGAIN comes from the socket's own limit, and ends when frames have left.
 * sendmmsg(2) reports an error only for its first message.
 */
static bool falls_back(struct packet_port *port, const struct packet_tx_burst *burst, int error)
{
	if (error != -EINVAL || burst->frames[0] == 1)
		return false;
	port->gso = false;
	return true;
}

uint32_t packet_port_tx(struct packet_port *port, const struct packet_port_frame *frames,
			uint32_t n, uint32_t *lost)
{
	struct packet_tx_burst *burst = &port->burst;
	uint32_t done = 0;

	*lost = 0;
	while (done < n) {
		uint32_t end = n - done < TX_BURST ? n : done + TX_BURST;
		int sent;

		burst->n = burst->n_parts = 0;
		for (uint32_t at = done; at < end;)
			at += add_message(port, frames + at, end - at);
		sent = send_packet_burst(port, burst);
		for (int i = 0; i < sent; i++)
			done += burst->frames[i];
		if (sent == -EAGAIN)
			break;
		if (sent < 0 && !falls_back(port, burst, sent)) {
			done += burst->frames[0];
			*lost += burst->frames[0];
		}
	}
	return done;
}
