/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "answering_port.h"

#include <errno.h>
#include <string.h>

#include "netdev_ops.h"

static int answer_wait_fd(struct netdev *port)
{
	(void)port;
	return ANSWERING_WAIT_FD;
}

static bool answer_mac(const struct netdev *port, uint8_t mac[6])
{
	(void)port;
	memset(mac, ANSWERING_MAC_BYTE, 6);
	return true;
}

static uint32_t answer_mtu(const struct netdev *port)
{
	(void)port;
	return ANSWERING_MTU;
}

static int answer_set_promiscuous(struct netdev *port, bool on)
{
	(void)port;
	return on ? -EPERM : -EBUSY;
}

static int answer_add_mac(struct netdev *port, const uint8_t mac[6])
{
	(void)port;
	return -mac[5];
}

static int answer_set_allmulticast(struct netdev *port)
{
	(void)port;
	return -EIO;
}

static int answer_add_vlan(struct netdev *port, uint16_t vlan)
{
	(void)port;
	return -vlan;
}

static int answer_exclude_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n)
{
	(void)port, (void)blocks, (void)n;
	return 0;
}

static bool answer_can_exclude_qpns(struct netdev *port)
{
	(void)port;
	return true;
}

static bool answer_is_up(struct netdev *port)
{
	(void)port;
	return false;
}

static uint64_t answer_page_size(const struct netdev *port)
{
	(void)port;
	return ANSWERING_PAGE_SIZE;
}

static void answer_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT])
{
	(void)port;
	counters[NETDEV_RX_FRAMES] = ANSWERING_RECEIVED;
}

static void close_nothing(struct netdev *port)
{
	(void)port;
}

static const struct netdev_ops answering_ops = {
	.wait_fd = answer_wait_fd,
	.mac = answer_mac,
	.mtu = answer_mtu,
	.set_promiscuous = answer_set_promiscuous,
	.add_mac = answer_add_mac,
	.add_group = answer_add_mac,
	.set_allmulticast = answer_set_allmulticast,
	.add_vlan = answer_add_vlan,
	.exclude_qpns = answer_exclude_qpns,
	.admit_qpns = answer_exclude_qpns,
	.can_exclude_qpns = answer_can_exclude_qpns,
	.is_up = answer_is_up,
	.page_size = answer_page_size,
	.counters = answer_counters,
	.close = close_nothing,
};

struct netdev *answering_port(void)
{
	static struct netdev port = {.ops = &answering_ops};

	return &port;
}
