/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Any bytes as netlink messages of the kernel about links, addresses, routes and neighbours.
 */
#include <stdlib.h>
#include <string.h>

#include "urxed/hostnet/route.h"
#include "urxed/kernel/iface.h"

#define ETH0 5 /* ifindex of the uplinks */
#define ETH1 9

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_addresses(const struct iface_table *t)
{
	static struct host_address list[IFACE_ADDRESS_MAX];
	struct host host = {0};
	uint32_t i, n = iface_list_addresses(t, list);

	if (n > IFACE_ADDRESS_MAX)
		abort();
	for (i = 0; i < n; i++)
		if (list[i].uplink < 0 || list[i].uplink > 1 || list[i].vlan > ETHER_VLAN_MAX ||
		    list[i].prefix_len > 128 || !memchr(list[i].ndev, 0, sizeof(list[i].ndev)))
			abort();
	if (host_set_kernel_addresses(&host, list, n) > n)
		abort();
}

static void take(struct iface_table *t, const struct nlmsghdr *message)
{
	struct route_neigh neighbour = {0};
	struct route_result way = {0};

	iface_parse_message(t, message);
	iface_is_affected(t, message);
	route_parse_route(&way, message);
	route_parse_neigh(&neighbour, message);
	if (way.found && !way.hop_limit)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct iface_table t;
	struct nlmsghdr *message;
	uint32_t len;

	memset(&t, 0, sizeof(t));
	t.n_uplinks = 2;
	t.uplinks[0] = ETH0;
	t.uplinks[1] = ETH1;
	/* Each message is complete and in memory of its own, as from the kernel. */
	for (; size >= sizeof(*message); data += len, size -= len) {
		memcpy(&len, data, sizeof(len));
		if (len < sizeof(*message) || len > size)
			break;
		message = malloc(len);
		if (!message)
			abort();
		memcpy(message, data, len);
		take(&t, message);
		free(message);
	}
	check_addresses(&t);
	return 0;
}
