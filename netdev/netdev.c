/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "netdev_ops.h"

#include <errno.h>
#include <string.h>

/*
 * Poll intervals of ports without a descriptor. A frame soon after other frames is often a response
 * that a peer waits for: an interval of a quarter of the silence delays it by a quarter at most.
 * 1 ms is well under RoCE's timeouts, but 1,000 polls a second cost some percent of a processor.
 * After a second without frames the interval grows to what the usual timeout of 67 ms allows.
 */
#define INTERVAL_MIN_NS 10000
#define INTERVAL_NS     1000000
#define LONG_QUIET_NS   1000000000
#define INTERVAL_MAX_NS 50000000

uint32_t netdev_rx(struct netdev *port, uint64_t now, struct netdev_frame *frames, uint32_t n)
{
	return port->ops->rx(port, now, frames, n);
}

uint32_t netdev_tx(struct netdev *port, uint64_t now, const struct netdev_frame *frames, uint32_t n)
{
	return port->ops->tx(port, now, frames, n);
}

uint64_t netdev_next_deadline(struct netdev *port)
{
	return port->ops->next_deadline ? port->ops->next_deadline(port) : UINT64_MAX;
}

/* Returns the port of the device itself: the end of the chain of ports that sit on it. */
static struct netdev *lowest(const struct netdev *port)
{
	while (port->below)
		port = port->below;
	return (struct netdev *)port;
}

int netdev_wait_fd(struct netdev *port)
{
	port = lowest(port);
	return port->ops->wait_fd ? port->ops->wait_fd(port) : -1;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t netdev_poll_interval_ns(uint64_t quiet)
{
	if (quiet >= LONG_QUIET_NS)
		return min_u64(quiet / 50, INTERVAL_MAX_NS);
	return quiet / 4 < INTERVAL_MIN_NS ? INTERVAL_MIN_NS : min_u64(quiet / 4, INTERVAL_NS);
}

bool netdev_mac(const struct netdev *port, uint8_t mac[6])
{
	port = lowest(port);
	return port->ops->mac && port->ops->mac(port, mac);
}

uint32_t netdev_mtu(const struct netdev *port)
{
	port = lowest(port);
	return port->ops->mtu ? port->ops->mtu(port) : UINT32_MAX;
}

int netdev_add_vlan(struct netdev *port, uint16_t vlan)
{
	port = lowest(port);
	return port->ops->add_vlan ? port->ops->add_vlan(port, vlan) : 0;
}

/* The next three functions do not ask the lowest port: packets that another socket receives would
 * bypass an impairing port above. */
int netdev_exclude_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n)
{
	return port->ops->exclude_qpns ? port->ops->exclude_qpns(port, blocks, n) : -ENOTSUP;
}

int netdev_admit_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n)
{
	return port->ops->admit_qpns ? port->ops->admit_qpns(port, blocks, n) : -ENOTSUP;
}

bool netdev_can_exclude_qpns(struct netdev *port)
{
	return port->ops->can_exclude_qpns && port->ops->can_exclude_qpns(port);
}

int netdev_add_mac(struct netdev *port, const uint8_t mac[6])
{
	port = lowest(port);
	return port->ops->add_mac ? port->ops->add_mac(port, mac) : 0;
}

int netdev_add_group(struct netdev *port, const uint8_t mac[6])
{
	port = lowest(port);
	return port->ops->add_group ? port->ops->add_group(port, mac) : 0;
}

int netdev_set_allmulticast(struct netdev *port)
{
	port = lowest(port);
	return port->ops->set_allmulticast ? port->ops->set_allmulticast(port) : 0;
}

int netdev_set_promiscuous(struct netdev *port, bool on)
{
	port = lowest(port);
	return port->ops->set_promiscuous ? port->ops->set_promiscuous(port, on) : 0;
}

void netdev_link_returned(struct netdev *port)
{
	port = lowest(port);
	if (port->ops->link_returned)
		port->ops->link_returned(port);
}

bool netdev_is_up(struct netdev *port)
{
	port = lowest(port);
	return port->ops->is_up ? port->ops->is_up(port) : true;
}

uint64_t netdev_page_size(const struct netdev *port)
{
	port = lowest(port);
	return port->ops->page_size ? port->ops->page_size(port) : 0;
}

void netdev_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT])
{
	port = lowest(port);
	memset(counters, 0, NETDEV_COUNTER_COUNT * sizeof(*counters));
	if (port->ops->counters)
		port->ops->counters(port, counters);
}

void netdev_close(struct netdev *port)
{
	if (port)
		port->ops->close(port);
}
