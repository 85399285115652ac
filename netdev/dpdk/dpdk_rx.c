/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives frames of a DPDK port: from the driver, from the sockets beside it, and before a sleep.
 */
#include "dpdk/dpdk_port.h"

#include <poll.h>

#include <rte_ethdev.h>

#include "packet/packet_socket.h"

/*
 * Silence before the port enables its interrupt, which costs a wake-up and may cost an exit of a
 * virtual machine.
 */
#define ARM_NS 4000000
/* Poll interval while the interrupt is enabled: net_vhost returns no frame while DPDK's own thread
 * has the queue, so a frame from before the enable may stay without an interrupt. */
#define FALLBACK_POLL_NS 1000000000
/*
 * Poll interval in the first GUEST_NS after a guest has come. net_vhost raises no interrupt for the
 * announcements that it makes for a migrated guest (VHOST_USER_SEND_RARP); QEMU orders the last one
 * 1.05 s after the guest's start.
 */
#define GUEST_POLL_NS 5000000
#define GUEST_NS      1500000000
/* Shortest time between two reads of the sockets' errors. */
#define ERRORS_NS 1000000

/* Whether a bridge or the interface has sent the port's own frame back; counts such a frame. */
static bool is_own(struct dpdk_port *port, const uint8_t *frame, uint32_t length)
{
	const struct rte_ether_hdr *ether = (const void *)frame;

	if (!port->drop_own || length < sizeof(*ether) ||
	    !rte_is_same_ether_addr(&ether->src_addr, &port->mac))
		return false;
	port->counters[NETDEV_RX_OWN]++;
	return true;
}

static void count_received(struct dpdk_port *port, uint32_t length)
{
	port->counters[NETDEV_RX_FRAMES]++;
	port->counters[NETDEV_RX_BYTES] += length;
}

static bool keep_frame(struct dpdk_port *port, struct rte_mbuf *mbuf)
{
	if (mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf)) {
		port->counters[NETDEV_RX_BAD]++;
		return false;
	}
	if (is_own(port, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len))
		return false;
	count_received(port, mbuf->data_len);
	return true;
}

void dpdk_port_free_received(struct dpdk_port *port)
{
	if (port->received_count)
		rte_pktmbuf_free_bulk(port->received, port->received_count);
	port->received_count = 0;
	qp1_ring_release(&port->qp1);
}

/*
 * Enables the interrupt after a silence of ARM_NS, and sets poll_at, the time of the next poll. The
 * port polls during a short silence, as a port without a descriptor does. It also polls a device
 * whose interrupt has not come for a frame yet, since the interrupt may not work. Returns the
 * number of frames that it receives after the enable: they may have come before, and raise no
 * interrupt.
 */
static uint16_t prepare_sleep(struct dpdk_port *port, uint64_t now, struct rte_mbuf **mbufs,
			      uint16_t n)
{
	uint64_t quiet = now - port->active_at;
	uint16_t count = 0;

	if (quiet < ARM_NS)
		dpdk_interrupt_reset(&port->interrupt);
	else if (dpdk_interrupt_arm(&port->interrupt))
		count = rte_eth_rx_burst(port->id, 0, mbufs, n);
	if (dpdk_interrupt_take_change(&port->interrupt))
		port->guest_until = now + GUEST_NS;
	port->poll_at = now + (dpdk_interrupt_is_reliable(&port->interrupt)
				       ? FALLBACK_POLL_NS
				       : netdev_poll_interval_ns(quiet));
	if (now < port->guest_until && port->poll_at > now + GUEST_POLL_NS)
		port->poll_at = now + GUEST_POLL_NS;
	return count;
}

/* Whether the descriptor has an error. A tap's has one, for good, once the interface is removed. */
static bool has_error(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

/*
 * Takes the pending errors of the descriptors, and notes a tap that lost its interface. A pending
 * error makes poll(2) return: of a packet socket, for example, when the interface went down; of a
 * tap whose interface was removed. Frames for which net_af_xdp has no buffers make poll(2) return,
 * too. All are rare, and this check takes a system call, so it comes once in ERRORS_NS: until then
 * a caller may see an empty ring, and a poll(2) that returns at once.
 */
static void clear_errors(struct dpdk_port *port, uint64_t now)
{
	if (now < port->errors_at)
		return;
	port->errors_at = now + ERRORS_NS;
	if (port->packet_fd >= 0)
		packet_socket_clear_error(port->packet_fd);
	if (qp1_ring_fd(&port->qp1) >= 0)
		packet_socket_clear_error(qp1_ring_fd(&port->qp1));
	if (port->machines.packets)
		packet_socket_clear_error(port->machines.fd);
	if (port->is_tap && !port->lost)
		port->lost = has_error(port->driver_fd);
	if (port->arp_nd.fd >= 0 && rte_mempool_avail_count(port->pool) < DPDK_BURST)
		dpdk_port_reclaim(port);
}

static uint16_t receive_burst(struct dpdk_port *port, uint64_t now, struct rte_mbuf **mbufs,
			      uint16_t n)
{
	uint16_t count = rte_eth_rx_burst(port->id, 0, mbufs, n);

	if (!count && port->wait_taken)
		clear_errors(port, now);
	/* ARP and ND frames are few: calls recvmsg only when the driver's ring is empty. */
	if (!count && port->arp_nd.fd >= 0) {
		mbufs[0] = arp_nd_socket_recv(&port->arp_nd, port->pool);
		count = mbufs[0] != NULL;
	}
	if (!count && port->wait_taken && port->interrupt.fd >= 0)
		count = prepare_sleep(port, now, mbufs, n);
	if (count) {
		port->active_at = now;
		dpdk_interrupt_disarm(&port->interrupt);
	}
	return count;
}

/* Receives further bursts while all received frames are dropped: a netdev_rx without frames must
 * mean an empty ring. */
static void receive_kept(struct dpdk_port *port, uint64_t now, uint32_t n)
{
	struct rte_mbuf *mbufs[DPDK_BURST];
	uint16_t count, i;

	while (n && !port->received_count) {
		count = receive_burst(port, now, mbufs, n < DPDK_BURST ? n : DPDK_BURST);
		if (!count)
			break;
		for (i = 0; i < count; i++) {
			if (keep_frame(port, mbufs[i]))
				port->received[port->received_count++] = mbufs[i];
			else
				rte_pktmbuf_free(mbufs[i]);
		}
	}
}

/* Removes the port's own frames; returns how many are left, at the start of the array. */
static uint32_t keep_frames(struct dpdk_port *port, struct netdev_frame *frames, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (is_own(port, frames[i].data, frames[i].len))
			continue;
		count_received(port, frames[i].len);
		frames[kept++] = frames[i];
	}
	return kept;
}

/* Receives packets to QP1, further ones while all are dropped (as receive_kept). */
static uint32_t receive_qp1(struct dpdk_port *port, struct netdev_frame *frames, uint32_t n)
{
	uint32_t received, kept = 0;

	while (!kept && (received = qp1_ring_rx(&port->qp1, frames, n))) {
		kept = keep_frames(port, frames, received);
		if (!kept)
			qp1_ring_release(&port->qp1);
	}
	return kept;
}

static uint32_t receive_for_machines(struct dpdk_port *port, struct netdev_frame *frames,
				     uint32_t n)
{
	uint32_t received, kept = 0;

	while (!kept && (received = machine_socket_rx(&port->machines, frames, n)))
		kept = keep_frames(port, frames, received);
	return kept;
}

/* At most half of the n frames are to QP1, and half of the rest to virtual machines, so that such
 * frames delay data packets little. */
uint32_t dpdk_port_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames, uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);
	uint32_t first;

	dpdk_port_free_received(port);
	first = receive_qp1(port, frames, (n + 1) / 2);
	first += receive_for_machines(port, frames + first, (n - first + 1) / 2);
	frames += first;
	receive_kept(port, now, n - first);
	if (port->backlog.frames &&
	    (now >= port->backlog.at || (!port->received_count && !port->backlog.down)))
		dpdk_port_send_ring(port, now);
	for (uint16_t i = 0; i < port->received_count; i++)
		frames[i] = (struct netdev_frame){
			.data = rte_pktmbuf_mtod(port->received[i], const uint8_t *),
			.len = port->received[i]->data_len,
			.wire_len = port->received[i]->data_len,
		};
	return first + port->received_count;
}
