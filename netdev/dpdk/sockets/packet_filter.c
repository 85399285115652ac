/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/sockets/packet_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <pcap/pcap.h>

#include "packet/qpn_filter.h"

/*
 * Frames that urxed needs on an interface: RoCEv1 (IBA vol 1, Annex A16), RoCEv2 (Annex A17), ARP,
 * neighbour discovery (RFC 4861), and RARP, by which hypervisors announce a migrated virtual
 * machine. The kernel takes a VLAN tag out of the frame before the filter runs. QP1: the
 * destination QPN is in bytes 5 to 7 of the BTH, behind the GRH or the UDP header; IPv6 without
 * extension headers. A load beyond the frame's end makes the kernel drop the frame, so the
 * expressions check the length first.
 */
#define ROCE "ether proto 0x8915 or udp dst port 4791"
/* The RoCE packets that urxe's XDP program takes: netdev/xdp/roce.bpf.c. */
#define XDP_ROCE                                                            \
	"ether proto 0x8915 or "                                            \
	"(ip[0] = 0x45 and ip[6:2] & 0x3fff = 0 and udp dst port 4791) or " \
	"(ip6 proto 17 and ip6[42:2] = 4791)"
#define QP1                                                                               \
	"(ether proto 0x8915 and greater 62 and ether[59:2] = 0 and ether[61] = 1) or "   \
	"(ip and greater 50 and udp dst port 4791 and udp[13:2] = 0 and udp[15] = 1) or " \
	"(ip6 proto 17 and greater 70 and ip6[42:2] = 4791 and ip6[53:2] = 0 and ip6[55] = 1)"
#define RESOLUTION "arp or rarp or (icmp6 and ip6[40] >= 133 and ip6[40] <= 137)"

#define ROCE_AND_RESOLUTION ROCE " or " RESOLUTION
#define NO_QP1              "((" ROCE ") and not (" QP1 ")) or " RESOLUTION

#define LOAD(what)                    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_##what))
#define SKIP(value, if_equal, if_not) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, if_equal, if_not)

/* Drops frames of service VLANs (802.1ad): the socket's readers would insert an 802.1Q tag in place
 * of such a tag. */
static const struct sock_filter start[] = {
	/* 0 */ LOAD(VLAN_TAG_PRESENT),
	/* 1 */ SKIP(0, 3, 0),
	/* 2 */ LOAD(VLAN_TPID),
	/* 3 */ SKIP(ETH_P_8021Q, 1, 0),
	/* 4 */ BPF_STMT(BPF_RET | BPF_K, 0),
};

#define START (sizeof(start) / sizeof(start[0]))

struct filter {
	struct sock_filter all[BPF_MAXINSNS];
	uint32_t n;
};

/* Begins a filter with `start`, then drops RoCE packets to queue pairs of the n blocks. 0, or
 * -E2BIG: too many blocks. */
static int begin_filter(struct filter *filter, const uint16_t *blocks, uint32_t n)
{
	memcpy(filter->all, start, sizeof(start));
	filter->n = START;
	if (!n)
		return 0;
	n = qpn_filter_write(filter->all + filter->n, BPF_MAXINSNS - filter->n, blocks, n, 0);
	filter->n += n;
	return n ? 0 : -E2BIG;
}

static int add_instructions(struct filter *filter, const void *instructions, uint32_t n)
{
	if (filter->n + n > BPF_MAXINSNS)
		return -E2BIG;
	memcpy(filter->all + filter->n, instructions, n * sizeof(*filter->all));
	filter->n += n;
	return 0;
}

static int attach_filter(int fd, struct filter *filter)
{
	struct sock_fprog program = {(uint16_t)filter->n, filter->all};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

/* Adds instructions that end the filter: frames pass if the expression is true. */
static int add_expression(struct filter *filter, const char *expression)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, QPN_FILTER_PASS);
	struct bpf_program program;
	int err;

	if (!pcap)
		return -ENOMEM;
	err = pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN) ? -EINVAL : 0;
	pcap_close(pcap);
	if (err)
		return err;
	/* libpcap's instructions have the kernel's layout: pcap/bpf.h. */
	err = add_instructions(filter, program.bf_insns, program.bf_len);
	pcap_freecode(&program);
	return err;
}

static int attach_expression(int fd, struct filter *filter, const char *expression)
{
	return add_expression(filter, expression) ?: attach_filter(fd, filter);
}

/* A jump over the first of two expressions; attach_by_receiver() sets its distance. */
#define JUMP BPF_STMT(BPF_JMP | BPF_JA, 0)

/* Adds a jump over the first expression for frames to that MAC. */
static int add_mac(struct filter *filter, const uint8_t mac[6])
{
	const uint32_t first = (uint32_t)mac[0] << 8 | mac[1];
	const uint32_t last =
		(uint32_t)mac[2] << 24 | (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5];
	const struct sock_filter compare[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2),
		SKIP(last, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
		SKIP(first, 0, 1),
		JUMP,
	};

	return add_instructions(filter, compare, 5);
}

/* Attaches a filter of two expressions: `others` for unicast frames to a MAC that is not the
 * host's, `rest` for all other frames. */
static int attach_by_receiver(int fd, struct filter *filter, const struct packet_filter_macs *host,
			      const char *others, const char *rest)
{
	const struct sock_filter choice[] = {LOAD(PKTTYPE), SKIP(PACKET_OTHERHOST, 1, 0), JUMP};
	uint32_t begin = filter->n, end;
	int rc = add_instructions(filter, choice, 3);

	for (uint32_t i = 0; i < host->n && !rc; i++)
		rc = add_mac(filter, host->macs[i]);
	end = filter->n;
	rc = rc ?: add_expression(filter, others);
	for (uint32_t i = begin; i < end; i++)
		if (filter->all[i].code == (BPF_JMP | BPF_JA))
			filter->all[i].k = filter->n - i - 1;
	return rc ?: attach_expression(fd, filter, rest);
}

int packet_filter_roce(int fd, bool qp1, const uint16_t *blocks, uint32_t n)
{
	struct filter filter;

	return begin_filter(&filter, blocks, n)
		       ?: attach_expression(fd, &filter, qp1 ? ROCE_AND_RESOLUTION : NO_QP1);
}

int packet_filter_own_roce(int fd, bool qp1, const struct packet_filter_macs *host)
{
	struct filter filter;

	return begin_filter(&filter, NULL, 0)
		       ?: attach_by_receiver(fd, &filter, host,
					     qp1 ? QP1 " or " RESOLUTION : RESOLUTION,
					     qp1 ? ROCE_AND_RESOLUTION : NO_QP1);
}

int packet_filter_qp1(int fd)
{
	struct filter filter;

	return begin_filter(&filter, NULL, 0) ?: attach_expression(fd, &filter, QP1);
}

int packet_filter_admitted(int fd, const uint16_t *blocks, uint32_t n)
{
	struct filter filter;
	int rc = begin_filter(&filter, NULL, 0);

	if (rc)
		return rc;
	n = qpn_filter_write(filter.all + filter.n, BPF_MAXINSNS - filter.n, blocks, n,
			     QPN_FILTER_PASS);
	filter.n += n;
	return n ? attach_expression(fd, &filter, QP1 " or " RESOLUTION) : -E2BIG;
}

int packet_filter_resolution(int fd)
{
	struct filter filter;

	return begin_filter(&filter, NULL, 0) ?: attach_expression(fd, &filter, RESOLUTION);
}

int packet_filter_other_macs(int fd, bool xdp, const struct packet_filter_macs *host)
{
	/* Drops frames to the interface's own MAC. */
	static const struct sock_filter no_host[] = {
		LOAD(PKTTYPE),
		SKIP(PACKET_HOST, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct filter filter;

	return begin_filter(&filter, NULL, 0)
		       ?: add_instructions(&filter, no_host, 3)
		       ?: attach_by_receiver(fd, &filter, host,
					     xdp ? "not (" RESOLUTION ")"
						 : "not (" QP1 " or " RESOLUTION ")",
					     xdp ? "not (" XDP_ROCE " or " RESOLUTION ")"
						 : "not (" ROCE " or " RESOLUTION ")");
}

int packet_filter_nothing(int fd)
{
	static const struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct filter filter;

	return begin_filter(&filter, NULL, 0)
		       ?: add_instructions(&filter, &drop, 1)
		       ?: attach_filter(fd, &filter);
}
