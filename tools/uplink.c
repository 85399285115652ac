/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "uplink.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rxe/packet.h>

#include "log.h"

/* The interface that a spec names, "" where it names none. */
static void set_ifname(struct uplink *u)
{
	const char *name = strchr(u->spec, ':');

	u->kernel = !strncmp(u->spec, "af_packet:", 10) || !strncmp(u->spec, "af_xdp:", 7);
	if (name && (u->kernel || !strncmp(u->spec, "tap:", 4)))
		snprintf(u->ifname, sizeof(u->ifname), "%.*s", (int)strcspn(name + 1, ","),
			 name + 1);
}

static int hold_port(int family, const char *ifname)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = {1, &drop};
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(URXE_UDP_PORT)};
	struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(URXE_UDP_PORT)};
	const void *any = family == AF_INET ? (const void *)&any4 : &any6;
	socklen_t len = family == AF_INET ? sizeof(any4) : sizeof(any6);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, err;

	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, ifname, (socklen_t)strlen(ifname)) &&
	    (family == AF_INET || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) &&
	    !bind(fd, any, len))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

/*
 * The kernel sees the frames of its interface too, and would answer RoCEv2 with
 * ICMP port unreachable. A socket that holds the port and drops everything stops that.
 */
static int hold_ports(struct uplink *u, char why[UPLINK_WHY])
{
	static const int families[2] = {AF_INET, AF_INET6};
	uint32_t i;

	for (i = 0; i < 2; i++) {
		u->hold[i] = hold_port(families[i], u->ifname);
		/* A kernel without IPv6 answers nothing by it either. */
		if (u->hold[i] == -EAFNOSUPPORT && families[i] == AF_INET6)
			u->hold[i] = -1;
		else if (u->hold[i] < 0)
			break;
	}
	if (i == 2)
		return 0;
	snprintf(why, UPLINK_WHY, "cannot hold UDP port %d of %s: %s%s", URXE_UDP_PORT, u->ifname,
		 strerror(-u->hold[i]),
		 u->hold[i] == -EADDRINUSE ? " (rdma_rxe or another urxed has the interface)" : "");
	return u->hold[i];
}

static int spoil(struct uplink *u, const struct fault *fault, char why[UPLINK_WHY])
{
	int rc;

	if (!fault->asked)
		return 0;
	rc = netdev_fault_open(u->port, &fault->tx, fault->both_ways ? &fault->rx : NULL, &u->port);
	if (rc)
		snprintf(why, UPLINK_WHY, "no memory for the faults of %s", u->spec);
	u->spoiled = !rc;
	return rc;
}

int uplink_open(struct uplink *u, const char *spec, const struct fault *fault, char why[UPLINK_WHY])
{
	int rc;

	*u = (struct uplink){.spec = spec, .hold = {-1, -1}};
	set_ifname(u);
	rc = netdev_dpdk_open(spec, HOST_MTU, &u->port, why, UPLINK_WHY);
	if (rc)
		return rc;
	netdev_mac(u->port, u->mac);
	u->mtu = (uint16_t)netdev_mtu(u->port);
	u->stride = ETHER_HDR_LEN + ETHER_VLAN_LEN + u->mtu;
	u->room = calloc(UPLINK_QUEUE, u->stride);
	if (!u->room) {
		snprintf(why, UPLINK_WHY, "no memory for the queue of %s", spec);
		rc = -ENOMEM;
	}
	if (!rc && u->kernel)
		rc = hold_ports(u, why);
	if (!rc)
		rc = spoil(u, fault, why);
	if (rc)
		uplink_close(u);
	return rc;
}

void uplink_close(struct uplink *u)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		if (u->hold[i] >= 0)
			close(u->hold[i]);
	if (u->port)
		netdev_close(u->port);
	free(u->room);
}

static void log_faults(const struct uplink *u, const char *way,
		       const struct netdev_fault_counters *counters)
{
#define LOG(member, text)                                                 \
	if (counters->member)                                             \
		log_line("%s, faults %s: " #member " %llu", u->spec, way, \
			 (unsigned long long)counters->member);
	NETDEV_FAULT_COUNTER_LIST(LOG)
#undef LOG
}

void uplink_log_faults(const struct uplink *u)
{
	struct netdev_fault_counters tx, rx;

	if (!u->spoiled)
		return;
	netdev_fault_counters(u->port, &tx, &rx);
	log_faults(u, "out", &tx);
	log_faults(u, "in", &rx);
}
