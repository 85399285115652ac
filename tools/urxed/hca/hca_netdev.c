/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hca/hca_netdev.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>

#include "urxed/hca/sysfs_file.h"
#include "urxed/hostnet/ether_text.h"
#include "urxed/hostnet/host.h"

/* Limit of the interfaces in one search: another urxed's tree may have a circle of interfaces. */
#define INTERFACES_MAX 256

/* The longest headers of a RoCE packet behind Ethernet's: GRH or IPv6 header, UDP, BTH, XRCETH,
 * AtomicETH and ICRC (IBA volume 1, 5.2). Linux' iboe_get_mtu subtracts the same. */
#define ROCE_HEADERS (40 + 8 + 12 + 4 + 28 + 4)

#define LOWER_PREFIX "lower_"

bool hca_netdev_mac(const char *sys, const char *ifname, uint8_t mac[ETHER_MAC_LEN])
{
	char text[3 * ETHER_MAC_LEN];

	return sysfs_read_number("%s/class/net/%s/type", sys, ifname) == ARPHRD_ETHER &&
	       !sysfs_read_text(text, sizeof(text), "%s/class/net/%s/address", sys, ifname) &&
	       ether_read_mac(text, mac) && !ether_is_zero(mac);
}

/* Reads /proc/net/vlan, which exists only while the module 8021q is loaded, because sysfs has no
 * VLAN ID. */
uint16_t hca_netdev_vlan(const char *sys, const char *ifname)
{
	char path[PATH_MAX], line[128];
	unsigned int vlan = 0;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/../proc/net/vlan/%s", sys, ifname) >= PATH_MAX)
		return 0;
	f = fopen(path, "re");
	if (!f) {
		sysfs_note_error(errno);
		return 0;
	}
	if (fgets(line, sizeof(line), f)) {
		const char *vid = strstr(line, "VID: ");

		if (!vid || sscanf(vid, "VID: %4u", &vlan) != 1 || vlan > ETHER_VLAN_MAX)
			vlan = 0;
	}
	fclose(f);
	return (uint16_t)vlan;
}

uint16_t hca_netdev_path_mtu(const char *sys, const char *ifname)
{
	uint32_t mtu = sysfs_read_number("%s/class/net/%s/mtu", sys, ifname);
	uint16_t path = 4096;

	while (path >= 256 && mtu < (uint32_t)path + ROCE_HEADERS)
		path /= 2;
	return path >= 256 ? path : 0;
}

/* As hca_netdev_is_above. *budget: number of interfaces that the search may still read. */
static bool search_below(const char *sys, const char *upper, const char *lower, uint32_t *budget)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (!strcmp(upper, lower))
		return true;
	if (!*budget || snprintf(path, sizeof(path), "%s/class/net/%s", sys, upper) >= PATH_MAX)
		return false;
	--*budget;
	dir = sysfs_open_dir(path);
	while (dir && !found && (entry = readdir(dir))) {
		const char *name = entry->d_name + strlen(LOWER_PREFIX);

		if (!strncmp(entry->d_name, LOWER_PREFIX, strlen(LOWER_PREFIX)) &&
		    strlen(name) < HOST_NDEV_LEN)
			found = search_below(sys, name, lower, budget);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool hca_netdev_is_above(const char *sys, const char *upper, const char *lower)
{
	uint32_t budget = INTERFACES_MAX;

	return upper[0] && lower[0] && search_below(sys, upper, lower, &budget);
}
