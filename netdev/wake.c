/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pcap/pcap.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/*
 * RoCEv1 (IBA vol 1, Annex A16), RoCEv2 (Annex A17), ARP and neighbour discovery
 * (RFC 4861). The kernel takes a VLAN tag out before a socket sees the frame.
 */
static const char *const expression = "ether proto 0x8915 or arp or udp dst port 4791 or "
				      "(icmp6 and ip6[40] >= 133 and ip6[40] <= 137)";

/* One byte of each frame is enough to be readable. */
static int set_filter(int fd)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 1);
	struct bpf_program program;
	struct sock_fprog filter;
	int err;

	if (!pcap)
		return -ENOMEM;
	err = pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN) ? -EINVAL : 0;
	pcap_close(pcap);
	if (err)
		return err;
	/* libpcap's instructions have the kernel's layout: pcap/bpf.h. */
	filter.len = program.bf_len;
	filter.filter = (struct sock_filter *)program.bf_insns;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		err = -errno;
	pcap_freecode(&program);
	return err;
}

/*
 * The smallest receive buffer: after a frame or two it is full, and the kernel
 * turns further ones away at once. Where outgoing frames cannot be ignored
 * (before Linux 4.20) they wake us in vain.
 */
static int set_up(int fd, unsigned int ifindex)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)ifindex,
	};
	const struct packet_mreq groups = {
		.mr_ifindex = (int)ifindex,
		.mr_type = PACKET_MR_ALLMULTI,
	};
	int one = 1, err;

	err = set_filter(fd);
	if (err)
		return err;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one)))
		return -errno;
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	/*
	 * The interface's own filter passes the groups that the kernel is in, not those of RoCE
	 * and of our addresses' neighbour discovery; the drivers have no call for it.
	 */
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &groups, sizeof(groups)))
		return -errno;
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* With protocol 0 nothing arrives before the filter stands and bind names the interface. */
int wake_open(unsigned int ifindex)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = set_up(fd, ifindex);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int wake_for_all(int fd)
{
	int unused = 0;

	return setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused)) ? -errno : 0;
}

/*
 * An error such as ENETDOWN counts as a frame: it made the socket readable, and
 * taking it makes it quiet. The receive buffer holds far fewer than the limit.
 */
bool wake_drain(int fd)
{
	char byte;
	int i;

	for (i = 0; i < 64; i++)
		if (recv(fd, &byte, sizeof(byte), 0) < 0 && errno == EAGAIN)
			break;
	return i > 0;
}
