/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends frames of a DPDK port, and those that the kernel left in a packet socket's ring. */
#include "dpdk/dpdk_port.h"

#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>

#include "dpdk/vhost_ring.h"
#include "packet/packet_socket.h"

/* First and longest pause between attempts to send frames that the kernel left in its ring. */
#define RESEND_NS     50000
#define RESEND_MAX_NS 1000000
/* The pause while the interface is down; dpdk_port_link_returned ends it early. */
#define RESEND_DOWN_NS 10000000000ull

/*
 * Counts bytes that the kernel has sent while frames are left. No frame is longer than frame_max,
 * so each frame_max bytes were one frame or more. The rest is kept: the next call adds to it.
 */
static void count_sent(struct dpdk_port *port, uint64_t bytes)
{
	bytes += port->backlog.sent_bytes;
	port->backlog.frames -= RTE_MIN(bytes / port->frame_max, port->backlog.frames - 1ull);
	port->backlog.sent_bytes = bytes % port->frame_max;
}

/*
 * net_af_packet makes one system call for the frames that it puts into the ring. The kernel stops
 * at a full send buffer of the socket (by default 45 frames of 4 KiB), or when the queueing
 * discipline refuses a frame. The driver counts all frames as sent, so those left would stay in the
 * ring until the next transmission. This function makes the kernel send them. Only a system call
 * shows whether frames are left, so the port makes it when it has nothing to receive, and under
 * load not for each frame. A port whose interface is down never receives: it makes the call after a
 * pause, or when it sends with a full ring.
 */
void dpdk_port_send_ring(struct dpdk_port *port, uint64_t now)
{
	uint64_t bytes;
	int rc = packet_socket_send_ring(port->packet_fd, &bytes);

	/* The end of a link leaves this error at the socket until the next call, even if the link
	 * has returned. */
	if (rc == -ENETDOWN)
		rc = packet_socket_send_ring(port->packet_fd, &bytes);
	port->backlog.down = rc == -ENETDOWN;
	if (port->backlog.down) /* the kernel sends no frame then */
		port->backlog.pause = RESEND_DOWN_NS;
	else if (rc == -EAGAIN)
		count_sent(port, bytes);
	else
		port->backlog.frames = port->backlog.sent_bytes = 0;
	port->backlog.at = now + port->backlog.pause;
	port->backlog.pause = RTE_MIN(2 * port->backlog.pause, RESEND_MAX_NS);
}

void dpdk_port_link_returned(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);

	if (port->backlog.down)
		port->backlog.at = 0;
}

/* How many frames the driver may get now. With a full ring the driver would wait for a free slot,
 * for ever if the interface is down, and block the daemon's loop. */
static uint32_t ring_room(struct dpdk_port *port, uint64_t now)
{
	if (port->packet_fd < 0)
		return UINT32_MAX;
	if (port->backlog.frames >= port->backlog.limit)
		dpdk_port_send_ring(port, now);
	return port->backlog.limit - port->backlog.frames;
}

void dpdk_port_reclaim(struct dpdk_port *port)
{
	rte_eth_tx_burst(port->id, 0, NULL, 0);
}

static int alloc_buffers(struct dpdk_port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	if (!rte_pktmbuf_alloc_bulk(port->pool, mbufs, n))
		return 0;
	dpdk_port_reclaim(port);
	return rte_pktmbuf_alloc_bulk(port->pool, mbufs, n);
}

/* Sends up to DPDK_BURST frames. Returns how many the device accepted, or -ENOMEM. */
static int send_dpdk_burst(struct dpdk_port *port, const struct netdev_frame *frames, uint16_t n)
{
	struct rte_mbuf *mbufs[DPDK_BURST];
	uint16_t sent, i;

	if (alloc_buffers(port, mbufs, n))
		return -ENOMEM;
	for (i = 0; i < n; i++)
		memcpy(rte_pktmbuf_append(mbufs[i], frames[i].len), frames[i].data, frames[i].len);
	sent = rte_eth_tx_burst(port->id, 0, mbufs, n);
	if (sent < n)
		rte_pktmbuf_free_bulk(mbufs + sent, n - sent);
	for (i = 0; i < sent; i++)
		port->counters[NETDEV_TX_BYTES] += frames[i].len;
	port->counters[NETDEV_TX_FRAMES] += sent;
	return sent;
}

static uint16_t count_fitting(const struct dpdk_port *port, const struct netdev_frame *frames,
			      uint32_t n)
{
	uint16_t count = 0;

	while (count < n && count < DPDK_BURST && frames[count].len <= port->frame_max)
		count++;
	return count;
}

static bool guest_has_buffer(struct dpdk_port *port)
{
	bool has;

	if (!port->is_vhost)
		return false;
	pthread_mutex_lock(&port->interrupt.enable_lock);
	has = vhost_ring_has_buffer(port->id);
	pthread_mutex_unlock(&port->interrupt.enable_lock);
	return has;
}

/*
 * Sends a frame again that the device has refused, if a vhost guest has posted a buffer. A second
 * refusal shows that the buffer is too short, and the function drops the frame: DPDK would always
 * refuse it, and the frames behind it would wait for ever. False: the frame must wait.
 */
static bool settle_refused(struct dpdk_port *port, const struct netdev_frame *frame)
{
	int sent = guest_has_buffer(port) ? send_dpdk_burst(port, frame, 1) : -EAGAIN;

	port->counters[NETDEV_TX_TOO_LONG] += !sent;
	return sent >= 0;
}

uint32_t dpdk_port_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
		      uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);
	uint32_t room = ring_room(port, now), may = n < room ? n : room, done = 0;

	while (done < may) {
		uint16_t count = count_fitting(port, frames + done, may - done);
		int sent;

		if (!count) {
			port->counters[NETDEV_TX_TOO_LONG]++;
			done++;
			continue;
		}
		sent = send_dpdk_burst(port, frames + done, count);
		if (sent > 0)
			done += (uint32_t)sent;
		if (sent == count)
			continue;
		if (sent < 0 || !settle_refused(port, &frames[done]))
			break;
		done++;
	}
	port->counters[NETDEV_TX_REFUSED] += n - done;
	if (done)
		port->active_at = now;
	if (port->packet_fd >= 0 && done) {
		port->backlog.frames += done;
		port->backlog.at = now + RESEND_NS;
		port->backlog.pause = RESEND_NS;
	}
	return done;
}
