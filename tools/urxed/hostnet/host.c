/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/host.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/rundir.h"
#include "urxed/hostnet/ether_text.h"
#include "urxed/hostnet/nd_frame.h"
#include "urxed/session/process_info.h"

#define PKEY_PARTITION 0x7fff
#define PKEY_FULL      0x8000 /* membership bit: full member */

/* FNV-1a, 64 bits; the murmur3 finalizer then mixes high bits into low ones. */
static uint64_t fnv1a_hash(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325u;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3u;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 33;
}

/* Returns a number that differs between users, network namespaces and indices, and stays the same
 * until the next boot. */
static uint64_t host_hash(uint32_t index)
{
	struct {
		char boot_id[36];
		uint32_t uid;
		uint64_t netns;
		uint64_t index;
	} seed = {.uid = geteuid(), .netns = rundir_netns(), .index = index};
	char boot_id[PROCESS_BOOT];

	/* Without a boot ID the number survives a reboot, but still differs between daemons. */
	process_boot(boot_id);
	memcpy(seed.boot_id, boot_id, sizeof(seed.boot_id));
	return fnv1a_hash(&seed, sizeof(seed));
}

void host_make_mac(uint8_t mac[ETHER_MAC_LEN], uint32_t index)
{
	uint64_t h = host_hash(index);

	memcpy(mac, &h, ETHER_MAC_LEN);
	mac[0] = 0x02; /* locally administered, unicast (IEEE 802, 8.2) */
}

void host_init(struct host *h)
{
	memset(h, 0, sizeof(*h));
	strcpy(h->device, HOST_DEVICE);
	host_make_mac(h->mac, 0);
	h->mtu = h->mtu_limit = HOST_MTU;
	h->up = true;
	h->rate = port_rate_default;
	/* lo, because it exists in each network namespace, and libibverbs reads the interface's
	 * index. */
	snprintf(h->ndev, sizeof(h->ndev), "lo");
}

const char *host_uverbs_name(const struct host *h)
{
	return h->other_node ? VNIC_UVERBS_OTHER : VNIC_UVERBS_NAME;
}

void host_node_guid(const struct host *h, uint8_t guid[8])
{
	vnic_node_guid(h->mac, h->other_node, guid);
}

static bool is_same_address(const struct host_address *a, const struct host_address *b)
{
	return !memcmp(a->ip, b->ip, sizeof(a->ip)) && a->vlan == b->vlan;
}

/* Returns the entry that the address has, or had last; NULL: it never had one, or another address
 * has taken it. */
static struct host_address *find_index(struct host *h, const struct host_address *a)
{
	struct host_address *at;

	for (at = h->addresses; at < h->addresses + HOST_ADDRESSES; at++)
		if ((at->valid || at->freed) && is_same_address(at, a))
			return at;
	return NULL;
}

static struct host_address *find_address(struct host *h, const struct host_address *a)
{
	struct host_address *at = find_index(h, a);

	return at && at->valid ? at : NULL;
}

/* Returns the free entry that this address had before; else the entry that has been free for
 * longest; NULL: none is free. */
static struct host_address *choose_index(struct host *h, const struct host_address *a)
{
	struct host_address *best = find_index(h, a), *at;

	if (best)
		return best;
	for (at = h->addresses; at < h->addresses + HOST_ADDRESSES; at++)
		if (!at->valid && (!best || at->freed < best->freed))
			best = at;
	return best;
}

static uint32_t count_dynamic(const struct host *h)
{
	const struct host_address *at;
	uint32_t n = 0;

	for (at = h->addresses; at < h->addresses + HOST_ADDRESSES; at++)
		n += at->valid && at->dynamic && !at->given;
	return n;
}

static int add_address(struct host *h, const struct host_address *a)
{
	struct host_address *at = choose_index(h, a);

	if (!at || (a->dynamic && count_dynamic(h) >= HOST_DYNAMIC_ADDRESSES))
		return -ENOSPC;
	*at = *a;
	at->valid = true;
	return 0;
}

void host_reserve_index(struct host *h, uint32_t index, const uint8_t ip[16], uint16_t vlan)
{
	struct host_address *at = &h->addresses[index];

	at->vlan = vlan;
	at->freed = ++h->n_freed;
	memcpy(at->ip, ip, sizeof(at->ip));
}

static void set_given(struct host_address *at, uint8_t prefix_len, int uplink)
{
	at->given = true;
	at->given_prefix_len = prefix_len;
	at->given_uplink = uplink;
}

/* Clears `kernel` of each address that the kernel has removed. The host keeps such an address only
 * if --address names it, with the prefix length and uplink given there. */
static void drop_lost_addresses(struct host *h, const struct host_address *list, uint32_t n)
{
	struct host_address *at;
	uint32_t i;

	for (at = h->addresses; at < h->addresses + HOST_ADDRESSES; at++) {
		if (!at->valid || !at->kernel)
			continue;
		for (i = 0; i < n && !is_same_address(at, &list[i]); i++)
			;
		if (i < n)
			continue;
		at->kernel = at->tentative = false;
		at->ndev[0] = '\0';
		at->ifindex = 0;
		at->vlan_mtu = 0;
		memset(at->vlan_priority, 0, sizeof(at->vlan_priority));
		at->valid = at->given;
		at->prefix_len = at->given_prefix_len;
		at->uplink = at->given_uplink;
		if (!at->valid)
			at->freed = ++h->n_freed;
	}
}

static bool is_listed_before(const struct host_address *list, uint32_t i)
{
	uint32_t j = 0;

	while (j < i && !is_same_address(&list[j], &list[i]))
		j++;
	return j < i;
}

/* Adds or updates an address that the kernel has. Returns false if the table has no room for it. */
static bool set_kernel_address(struct host *h, struct host_address a)
{
	struct host_address *at = find_address(h, &a);

	a.kernel = true;
	a.valid = true;
	if (at && at->given)
		set_given(&a, at->given_prefix_len, at->given_uplink);
	if (!at)
		return !add_address(h, &a);
	*at = a;
	return true;
}

uint32_t host_set_kernel_addresses(struct host *h, const struct host_address *list, uint32_t n)
{
	uint32_t i, refused = 0;

	drop_lost_addresses(h, list, n);
	/* New addresses come after known ones, so that they take no index that a known address of
	 * the list had. */
	for (i = 0; i < n; i++)
		if (!is_listed_before(list, i) && find_index(h, &list[i]))
			set_kernel_address(h, list[i]);
	for (i = 0; i < n; i++)
		if (!is_listed_before(list, i) && !find_address(h, &list[i]))
			refused += !set_kernel_address(h, list[i]);
	return refused;
}

int host_add_link_local(struct host *h, int uplink)
{
	struct host_address a = {.prefix_len = 64, .uplink = uplink};

	nd_link_local(h->mac, a.ip);
	return find_address(h, &a) ? 0 : add_address(h, &a);
}

/* Adds an address from 169.254.1.0 to 169.254.254.255 (RFC 3927). */
static int add_v4_link_local(struct host *h)
{
	uint8_t v4[4] = {169, 254, (uint8_t)(1 + h->mac[4] % 254), h->mac[5]};
	struct host_address a = {.prefix_len = IP_V4_BITS + 16, .uplink = HOST_NO_UPLINK};

	ip_from_v4(a.ip, v4);
	return add_address(h, &a);
}

/* Adds an address of RFC 4193: fd, a global ID of 40 bits, subnet 0, and the interface ID of the
 * link-local address. */
static int add_ula(struct host *h)
{
	struct host_address a = {.prefix_len = 64, .uplink = HOST_NO_UPLINK};
	uint64_t global = fnv1a_hash(h->mac, sizeof(h->mac));

	nd_link_local(h->mac, a.ip);
	a.ip[0] = 0xfd;
	memcpy(a.ip + 1, &global, 5);
	return add_address(h, &a);
}

int host_add_generated(struct host *h)
{
	int rc = host_add_link_local(h, HOST_NO_UPLINK);

	if (!rc)
		rc = add_v4_link_local(h);
	return rc ? rc : add_ula(h);
}

/* Parses "@1" to "@4094", or an empty text. Returns false for another text. */
static bool parse_address_vlan(const char *text, uint16_t *vlan)
{
	if (!*text)
		return true;
	if (*text != '@')
		return false;
	text = ether_read_vlan(text + 1, vlan);
	return text && !*text && *vlan;
}

/* Returns true if the address is neither multicast, broadcast, loopback, unspecified nor in
 * 0.0.0.0/8. */
static bool is_station_address(const uint8_t ip[16])
{
	static const uint8_t zero[15];

	if (ip_is_v4(ip))
		return ip[12] && ip[12] != 127 && ip[12] < 224;
	return ip[0] != 0xff && (memcmp(ip, zero, sizeof(zero)) || ip[15] > 1);
}

/* Parses "ADDR/BITS[@VLAN]". Returns 0 or -EINVAL. */
static int parse_address(const char *text, struct host_address *a)
{
	const char *slash = strchr(text, '/');
	char ip[INET6_ADDRSTRLEN], *end;
	unsigned long bits;
	uint8_t v4[4];

	if (!slash || slash - text >= (long)sizeof(ip) || slash[1] < '0' || slash[1] > '9')
		return -EINVAL;
	snprintf(ip, sizeof(ip), "%.*s", (int)(slash - text), text);
	bits = strtoul(slash + 1, &end, 10);
	if (!parse_address_vlan(end, &a->vlan))
		return -EINVAL;
	if (inet_pton(AF_INET, ip, v4) == 1 && bits <= 32) {
		ip_from_v4(a->ip, v4);
		bits += IP_V4_BITS;
	} else if (inet_pton(AF_INET6, ip, a->ip) != 1 || bits > 128) {
		return -EINVAL;
	}
	a->prefix_len = (uint8_t)bits;
	return is_station_address(a->ip) ? 0 : -EINVAL;
}

int host_add_text(struct host *h, const char *text, int uplink)
{
	struct host_address a = {.uplink = uplink}, *at;
	int rc = parse_address(text, &a);

	if (rc)
		return rc;
	set_given(&a, a.prefix_len, uplink);
	at = find_address(h, &a);
	if (at)
		set_given(at, a.prefix_len, uplink);
	return at ? 0 : add_address(h, &a);
}

int host_add_pkey(struct host *h, const char *text)
{
	unsigned long pkey;
	char *end;

	if (text[0] != '0' || text[1] != 'x' || !isxdigit((unsigned char)text[2]))
		return -EINVAL;
	pkey = strtoul(text, &end, 16);
	if (*end || pkey > UINT16_MAX || !(pkey & PKEY_PARTITION))
		return -EINVAL;
	if (h->n_pkeys == VNIC_ATTACH_PKEYS)
		return -ENOSPC;
	h->pkeys[h->n_pkeys++] = (uint16_t)pkey;
	return 0;
}

int host_find_pkey(const struct host *h, uint16_t pkey)
{
	int partition = -1;

	for (uint32_t i = 0; i < h->n_pkeys; i++) {
		if (h->pkeys[i] == pkey)
			return (int)i;
		if ((h->pkeys[i] ^ pkey) == PKEY_FULL)
			partition = (int)i;
	}
	return partition;
}

const struct host_address *host_find_address(const struct host *h, const uint8_t ip[16])
{
	uint32_t i;

	for (i = 0; i < HOST_ADDRESSES; i++)
		if (h->addresses[i].valid && !memcmp(h->addresses[i].ip, ip, 16))
			return &h->addresses[i];
	return NULL;
}

const struct host_address *host_address_by_gid(const struct host *h, uint32_t gid_index)
{
	const struct host_address *a = &h->addresses[gid_index % HOST_ADDRESSES];

	return gid_index < VNIC_ATTACH_GIDS && a->valid ? a : NULL;
}

bool host_has_gid(const struct host *h, uint32_t gid_index, const uint8_t ip[16])
{
	const struct host_address *a = host_address_by_gid(h, gid_index);

	return a && !memcmp(a->ip, ip, sizeof(a->ip));
}

const struct host_address *host_find_in_vlan(const struct host *h, const uint8_t ip[16],
					     uint16_t vlan)
{
	const struct host_address *a;

	for (a = h->addresses; a < h->addresses + HOST_ADDRESSES; a++)
		if (a->valid && a->vlan == vlan && !memcmp(a->ip, ip, 16))
			return a;
	return NULL;
}

const uint8_t *host_vlan_mac(const struct host *h, uint32_t uplink, uint16_t vlan)
{
	const struct host_address *a;

	for (a = h->addresses; vlan && a < h->addresses + HOST_ADDRESSES; a++)
		if (a->valid && a->kernel && a->vlan == vlan && a->uplink == (int)uplink)
			return a->mac;
	return NULL;
}

bool host_has_vlan_mac(const struct host *h, const uint8_t mac[ETHER_MAC_LEN], uint16_t vlan)
{
	const struct host_address *a;

	for (a = h->addresses; vlan && a < h->addresses + HOST_ADDRESSES; a++)
		if (a->valid && a->kernel && a->vlan == vlan && ether_same(a->mac, mac))
			return true;
	return false;
}

bool host_has_interface_mac(const struct host *h, const uint8_t mac[ETHER_MAC_LEN])
{
	const struct host_address *a;

	for (a = h->addresses; a < h->addresses + HOST_ADDRESSES; a++)
		if (a->valid && a->kernel && ether_same(a->mac, mac))
			return true;
	return false;
}

bool host_same_subnet(const uint8_t a[16], const uint8_t b[16], uint8_t prefix_len)
{
	uint8_t bytes = prefix_len / 8, bits = prefix_len % 8;

	if (memcmp(a, b, bytes))
		return false;
	return !bits || !((a[bytes] ^ b[bytes]) >> (8 - bits));
}

static void fill_gids(const struct host *h, struct vnic_attach_gid *gids)
{
	uint32_t i;

	for (i = 0; i < VNIC_ATTACH_GIDS; i++) {
		const struct host_address *a = host_address_by_gid(h, i);

		if (!a)
			continue;
		memcpy(gids[i].raw, a->ip, 16);
		gids[i].valid = 1;
		gids[i].v1 = i >= HOST_ADDRESSES;
		gids[i].vlan = a->vlan;
		gids[i].ifindex = a->ifindex;
	}
}

uint32_t host_path_mtu(const struct host *h)
{
	uint32_t mtu = 4096;

	while (mtu > 256 && mtu + URXE_MAX_OVERHEAD - ETHER_HDR_LEN - ETHER_VLAN_LEN > h->mtu)
		mtu /= 2;
	return mtu;
}

struct port_rate host_rate(const struct host *h)
{
	return h->hca_rate.width ? h->hca_rate : h->rate;
}

void host_fill_port(const struct host *h, struct vnic_attach_port *port)
{
	*port = (struct vnic_attach_port){.link_mtu = h->mtu,
					  .up = h->up,
					  .uplink_generation = h->uplink_generation,
					  .uplink_carriers = h->uplink_carriers,
					  .machines = h->machines,
					  .active_width = host_rate(h).width,
					  .active_speed = host_rate(h).speed,
					  .hca = h->hca};
	fill_gids(h, port->gids);
}
