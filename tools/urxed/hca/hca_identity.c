/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hca/hca_identity.h"

#include <string.h>

/*
 * Returns the prefix length, of 128 bits, for the address in a GID. A GID table has no prefix
 * lengths. The standards fix that of link-local addresses (RFC 4291, 2.5.6; RFC 3927, 2.1); other
 * addresses get 128.
 */
static uint8_t prefix_of(const uint8_t ip[16])
{
	if (ip_is_v4(ip))
		return ip[12] == 169 && ip[13] == 254 ? IP_V4_BITS + 16 : 128;
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80 ? 64 : 128;
}

/* Whether the GID is a unicast address: a GID table may have any value. */
static bool is_address(const uint8_t ip[16])
{
	return ip[0] != 0xff && !(ip_is_v4(ip) && (ip[12] >= 224 || !ip[12]));
}

void hca_identity_set_mac(const struct hca_port *p, struct host *h)
{
	if (ether_is_station(p->mac))
		memcpy(h->mac, p->mac, sizeof(h->mac));
}

/* Returns the bytes of Ethernet payload that a packet of this path MTU needs with the longest
 * headers. */
static uint16_t link_mtu(uint16_t path_mtu)
{
	return (uint16_t)(path_mtu + URXE_MAX_OVERHEAD - ETHER_HDR_LEN - ETHER_VLAN_LEN);
}

uint32_t hca_identity_set_addresses(const struct hca_port *p, struct host *h)
{
	struct host_address list[HCA_GIDS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_gids; i++) {
		const struct hca_gid *gid = &p->gids[i];

		if (!is_address(gid->ip))
			continue;
		list[n] = (struct host_address){.prefix_len = prefix_of(gid->ip),
						.uplink = HOST_NO_UPLINK,
						.vlan = gid->vlan,
						.ifindex = gid->ifindex};
		memcpy(list[n].ip, gid->ip, sizeof(list[n].ip));
		memcpy(list[n].ndev, gid->ndev, sizeof(list[n].ndev));
		n++;
	}
	h->mtu = h->mtu_limit;
	/* A path MTU of 4096 sets no limit: HOST_MTU is made for it, with a reserve. */
	if (p->mtu && p->mtu < 4096 && link_mtu(p->mtu) < h->mtu)
		h->mtu = link_mtu(p->mtu);
	return host_set_kernel_addresses(h, list, n);
}
