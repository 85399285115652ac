/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A port on an interface of the kernel's, by a packet socket. Received frames are read where the
 * kernel has put them, in a ring that it shares with us; frames are sent from where they are, many
 * with one system call. A transmit ring would save no copy: where the device takes no frames in
 * pieces, the kernel makes one piece of what lies in the ring's pages.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "interface.h"
#include "packet_filter.h"
#include "packet_socket.h"
#include "port.h"
#include "why.h"

#define PREFIX "af_packet:"

#define BURST          64
#define VLAN_TAG       4
#define MAC_BOTH       12 /* destination and source */
#define ETHERTYPE_VLAN 0x8100

/* Keeps a slot within a block. */
#define MTU_MAX 32000u

/* An 802.1Q tag may come on top of the header. */
#define FRAME_OVERHEAD (14 + VLAN_TAG)

/* The kernel puts the frame this far into its slot at most, and the tag's room (tpacket_rcv). */
#define SLOT_OVERHEAD (TPACKET_ALIGN(TPACKET2_HDRLEN + 16) + VLAN_TAG)

/* Frames that wait while the host's other processes have the processors. */
#define RING_FRAMES 2048u
#define RING_BYTES  (16u << 20)
#define BLOCK       (64u << 10) /* what the kernel allocates at a time: whole slots */

struct af_packet_port {
	struct netdev netdev;
	LIST_ENTRY(af_packet_port) link;
	unsigned int ifindex;
	int fd;
	uint8_t mac[6];
	uint32_t mtu, frame_max;
	bool fd_taken; /* somebody sleeps on it */
	uint8_t *ring;
	uint32_t slot;      /* bytes */
	uint32_t per_block; /* slots */
	uint32_t slots;
	uint32_t next; /* slot to look at */
	uint32_t lent; /* slots before it that the receiver still looks at */
	uint64_t counters[NETDEV_COUNTER_COUNT];
};

/* Of this process. */
static LIST_HEAD(, af_packet_port) open_ports = LIST_HEAD_INITIALIZER(open_ports);

static struct af_packet_port *to_af_packet(struct netdev *port)
{
	return (struct af_packet_port *)port;
}

/* --- Receiving */

static struct tpacket2_hdr *slot_at(const struct af_packet_port *port, uint32_t i)
{
	return (struct tpacket2_hdr *)(port->ring + (size_t)(i / port->per_block) * BLOCK +
				       (size_t)(i % port->per_block) * port->slot);
}

/* The kernel may write to the slot from now on. */
static void give_slot(struct tpacket2_hdr *slot)
{
	__atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

static void give_back(struct af_packet_port *port)
{
	uint32_t i = port->next + port->slots - port->lent;

	for (; port->lent; port->lent--, i++)
		give_slot(slot_at(port, i % port->slots));
}

/* In the room in front of it (PACKET_RESERVE), as 802.1Q. */
static uint8_t *put_tag_back(uint8_t *frame, uint16_t tci)
{
	uint8_t *start = frame - VLAN_TAG;

	memmove(start, frame, MAC_BOTH);
	start[MAC_BOTH] = ETHERTYPE_VLAN >> 8;
	start[MAC_BOTH + 1] = ETHERTYPE_VLAN & 0xff;
	start[MAC_BOTH + 2] = (uint8_t)(tci >> 8);
	start[MAC_BOTH + 3] = (uint8_t)tci;
	return start;
}

static bool view(struct af_packet_port *port, struct tpacket2_hdr *slot, uint32_t status,
		 struct netdev_frame *frame)
{
	uint8_t *data = (uint8_t *)slot + slot->tp_mac;
	uint32_t len = slot->tp_len;

	if (status & TP_STATUS_VLAN_VALID) {
		data = put_tag_back(data, slot->tp_vlan_tci);
		len += VLAN_TAG;
	}
	if (slot->tp_snaplen < slot->tp_len || len > port->frame_max) {
		port->counters[NETDEV_RX_TOO_LONG]++;
		return false;
	}
	*frame = (struct netdev_frame){.data = data, .len = len, .wire_len = len};
	port->counters[NETDEV_RX_FRAMES]++;
	port->counters[NETDEV_RX_BYTES] += len;
	return true;
}

/* An error, such as that the interface went down, makes the descriptor readable until it is asked.
 */
static void take_error(const struct af_packet_port *port)
{
	int error;
	socklen_t size = sizeof(error);

	getsockopt(port->fd, SOL_SOCKET, SO_ERROR, &error, &size);
}

/* Slots of frames that are dropped are lent, too: they go back in the ring's order. */
static uint32_t af_packet_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			     uint32_t n)
{
	struct af_packet_port *port = to_af_packet(netdev);
	uint32_t count = 0;

	(void)now;
	give_back(port);
	while (count < n && port->lent < port->slots) {
		struct tpacket2_hdr *slot = slot_at(port, port->next);
		uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);

		if (!(status & TP_STATUS_USER))
			break;
		count += view(port, slot, status, frames + count);
		port->next = (port->next + 1) % port->slots;
		port->lent++;
	}
	if (count)
		return count;
	give_back(port);
	if (n && port->fd_taken)
		take_error(port);
	return 0;
}

/* --- Sending */

/* Up to BURST frames from the first one on, none of them too long. */
static uint32_t fitting(const struct af_packet_port *port, const struct netdev_frame *frames,
			uint32_t n)
{
	uint32_t count = 0;

	while (count < n && count < BURST && frames[count].len <= port->frame_max)
		count++;
	return count;
}

/* Returns how many the kernel took, or a negative errno value of the first. */
static int send_burst(struct af_packet_port *port, const struct netdev_frame *frames, uint32_t n)
{
	struct mmsghdr messages[BURST];
	struct iovec pieces[BURST];
	int sent;

	for (uint32_t i = 0; i < n; i++) {
		pieces[i] = (struct iovec){(void *)(uintptr_t)frames[i].data, frames[i].len};
		messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &pieces[i], .msg_iovlen = 1}};
	}
	sent = sendmmsg(port->fd, messages, n, MSG_DONTWAIT);
	if (sent < 0)
		return -errno;
	port->counters[NETDEV_TX_FRAMES] += (uint32_t)sent;
	for (int i = 0; i < sent; i++)
		port->counters[NETDEV_TX_BYTES] += frames[i].len;
	return sent;
}

/*
 * The kernel takes no more than the socket's send buffer has room for, by default some 45 frames of
 * 4 KiB that are on their way, and none that the queueing discipline refuses: those can be tried
 * again. Of any other error the frame is the reason, or the interface that is down, and it is lost.
 */
static uint32_t af_packet_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			     uint32_t n)
{
	struct af_packet_port *port = to_af_packet(netdev);
	uint32_t done = 0;

	(void)now;
	while (done < n) {
		uint32_t count = fitting(port, frames + done, n - done);
		int sent = count ? send_burst(port, frames + done, count) : 0;

		if (!count)
			port->counters[NETDEV_TX_TOO_LONG]++;
		else if (sent == -EAGAIN || sent == -ENOBUFS)
			break;
		else if (sent < 0)
			port->counters[NETDEV_TX_ERRORS]++;
		done += sent > 0 ? (uint32_t)sent : 1;
	}
	port->counters[NETDEV_TX_REFUSED] += n - done;
	return done;
}

/* --- Waiting, asking and closing */

static int af_packet_wait_fd(struct netdev *netdev)
{
	struct af_packet_port *port = to_af_packet(netdev);

	port->fd_taken = true;
	return port->fd;
}

static bool af_packet_mac(const struct netdev *netdev, uint8_t mac[6])
{
	memcpy(mac, ((const struct af_packet_port *)netdev)->mac, 6);
	return true;
}

static uint32_t af_packet_mtu(const struct netdev *netdev)
{
	return ((const struct af_packet_port *)netdev)->mtu;
}

static int af_packet_hear_all(struct netdev *netdev)
{
	struct af_packet_port *port = to_af_packet(netdev);
	const struct packet_mreq all = {.mr_ifindex = (int)port->ifindex,
					.mr_type = PACKET_MR_PROMISC};

	if (setsockopt(port->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)))
		return -errno;
	return packet_filter_none(port->fd);
}

/* The kernel counts from zero after each look. */
static void af_packet_counters(struct netdev *netdev, uint64_t counters[NETDEV_COUNTER_COUNT])
{
	struct af_packet_port *port = to_af_packet(netdev);
	struct tpacket_stats stats;
	socklen_t size = sizeof(stats);

	if (!getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size))
		port->counters[NETDEV_RX_MISSED] += stats.tp_drops;
	memcpy(counters, port->counters, sizeof(port->counters));
}

static size_t ring_size(const struct af_packet_port *port)
{
	return (size_t)port->slots / port->per_block * BLOCK;
}

static void af_packet_close(struct netdev *netdev)
{
	struct af_packet_port *port = to_af_packet(netdev);

	LIST_REMOVE(port, link);
	munmap(port->ring, ring_size(port));
	close(port->fd);
	free(port);
}

static const struct netdev_ops af_packet_ops = {
	.rx = af_packet_rx,
	.tx = af_packet_tx,
	.wait_fd = af_packet_wait_fd,
	.mac = af_packet_mac,
	.mtu = af_packet_mtu,
	.hear_all = af_packet_hear_all,
	.counters = af_packet_counters,
	.close = af_packet_close,
};

/* --- Opening */

static void plan_ring(struct af_packet_port *port)
{
	uint32_t frames;

	port->slot = TPACKET_ALIGN(SLOT_OVERHEAD + port->frame_max);
	port->per_block = BLOCK / port->slot;
	frames = RING_BYTES / BLOCK * port->per_block;
	if (frames > RING_FRAMES)
		frames = RING_FRAMES;
	port->slots = frames / port->per_block * port->per_block;
}

/* Before the socket hears anything. */
static int make_ring(struct af_packet_port *port)
{
	const int version = TPACKET_V2, reserve = VLAN_TAG;
	struct tpacket_req req;

	plan_ring(port);
	req = (struct tpacket_req){.tp_block_size = BLOCK,
				   .tp_block_nr = port->slots / port->per_block,
				   .tp_frame_size = port->slot,
				   .tp_frame_nr = port->slots};
	if (setsockopt(port->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(port->fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof(reserve)) ||
	    setsockopt(port->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
		return -errno;
	port->ring = mmap(NULL, ring_size(port), PROT_READ | PROT_WRITE, MAP_SHARED, port->fd, 0);
	return port->ring == MAP_FAILED ? -errno : 0;
}

static bool is_open(unsigned int ifindex)
{
	struct af_packet_port *port;

	LIST_FOREACH(port, &open_ports, link)
	if (port->ifindex == ifindex)
		return true;
	return false;
}

static int open_on(struct af_packet_port *port, const struct interface *iface, uint32_t mtu)
{
	int err;

	port->netdev.ops = &af_packet_ops;
	port->ifindex = iface->ifindex;
	memcpy(port->mac, iface->mac, sizeof(port->mac));
	port->mtu = mtu && mtu < iface->mtu ? mtu : iface->mtu;
	if (port->mtu > MTU_MAX)
		port->mtu = MTU_MAX;
	port->frame_max = port->mtu + FRAME_OVERHEAD;
	port->fd = packet_socket();
	if (port->fd < 0)
		return port->fd;
	err = make_ring(port) ?: packet_socket_bind(port->fd, port->ifindex, packet_filter_roce);
	if (!err)
		return 0;
	/* Closing the socket frees a ring that is not mapped. */
	if (port->ring && port->ring != MAP_FAILED)
		munmap(port->ring, ring_size(port));
	close(port->fd);
	return err;
}

int netdev_af_packet_open(const char *spec, uint32_t mtu, struct netdev **port, char *why,
			  uint32_t why_size)
{
	const char *name = spec + strlen(PREFIX);
	struct af_packet_port *new;
	struct interface iface;
	int err;

	if (strchr(name, ','))
		return netdev_why(why, why_size, -EINVAL, "%s: takes no options, but there is '%s'",
				  spec, strchr(name, ','));
	err = interface_find(spec, name, "root, or CAP_NET_RAW", &iface, why, why_size);
	if (err)
		return err;
	if (is_open(iface.ifindex))
		return netdev_why(why, why_size, -EEXIST, "%s: this process has it open already",
				  spec);
	new = calloc(1, sizeof(*new));
	err = new ? open_on(new, &iface, mtu) : -ENOMEM;
	if (err) {
		free(new);
		return netdev_why(why, why_size, err, "%s: cannot receive by a packet socket: %s",
				  spec, strerror(-err));
	}
	LIST_INSERT_HEAD(&open_ports, new, link);
	*port = &new->netdev;
	return 0;
}
