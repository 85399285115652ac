/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "packet_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdint.h>
#include <sys/socket.h>

#include <pcap/pcap.h>

/*
 * RoCEv1 (IBA vol 1, Annex A16), RoCEv2 (Annex A17), ARP and neighbour discovery
 * (RFC 4861). The kernel takes a VLAN tag out before a socket sees the frame.
 */
#define ROCE       "ether proto 0x8915 or udp dst port 4791"
#define RESOLUTION "arp or (icmp6 and ip6[40] >= 133 and ip6[40] <= 137)"

/* Longer than any frame: what passes is passed whole. */
#define WHOLE 262144

/* libpcap's instructions have the kernel's layout: pcap/bpf.h. */
static int attach(int fd, const struct bpf_program *program)
{
	struct sock_fprog all = {(uint16_t)program->bf_len,
				 (struct sock_filter *)program->bf_insns};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)) ? -errno : 0;
}

static int attach_expression(int fd, const char *expression)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, WHOLE);
	struct bpf_program program;
	int err;

	if (!pcap)
		return -ENOMEM;
	err = pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN) ? -EINVAL : 0;
	pcap_close(pcap);
	if (err)
		return err;
	err = attach(fd, &program);
	pcap_freecode(&program);
	return err;
}

int packet_filter_roce(int fd)
{
	return attach_expression(fd, ROCE " or " RESOLUTION);
}

int packet_filter_resolution(int fd)
{
	return attach_expression(fd, RESOLUTION);
}

int packet_filter_none(int fd)
{
	int unused = 0;

	return setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused)) ? -errno : 0;
}
