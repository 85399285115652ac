/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/packet_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <pcap/pcap.h>

/*
 * RoCEv1 (IBA vol 1, Annex A16), RoCEv2 (Annex A17), ARP and neighbor discovery (RFC 4861). The
 * kernel takes a VLAN tag out of the frame before the filter runs.
 */
#define ROCE       "ether proto 0x8915 or udp dst port 4791"
#define RESOLUTION "arp or (icmp6 and ip6[40] >= 133 and ip6[40] <= 137)"

/* Bytes that a filter passes: more than any frame has. */
#define ALL_BYTES 262144

/* Sockets in a fanout group, as DPDK's are, do not support PACKET_IGNORE_OUTGOING. */
static const struct sock_filter drop_outgoing[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

#define DROP_OUTGOING (sizeof(drop_outgoing) / sizeof(drop_outgoing[0]))

/* Attaches a filter that drops outgoing frames and runs the instructions for the others. */
static int attach_filter(int fd, const void *instructions, uint32_t n)
{
	struct sock_filter all[BPF_MAXINSNS];
	struct sock_fprog program = {(uint16_t)(DROP_OUTGOING + n), all};

	if (DROP_OUTGOING + n > BPF_MAXINSNS)
		return -E2BIG;
	memcpy(all, drop_outgoing, sizeof(drop_outgoing));
	memcpy(all + DROP_OUTGOING, instructions, n * sizeof(*all));
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		return -errno;
	return 0;
}

static int attach_expression(int fd, const char *expression)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, ALL_BYTES);
	struct bpf_program program;
	int err;

	if (!pcap)
		return -ENOMEM;
	err = pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN) ? -EINVAL : 0;
	pcap_close(pcap);
	if (err)
		return err;
	/* libpcap's instructions have the kernel's layout: pcap/bpf.h. */
	err = attach_filter(fd, program.bf_insns, program.bf_len);
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

int packet_filter_incoming(int fd)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, ALL_BYTES);

	return attach_filter(fd, &all, 1);
}
