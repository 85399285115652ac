/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hca/hca_scan.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "urxed/hca/hca_gids.h"
#include "urxed/hca/hca_netdev.h"
#include "urxed/hca/sysfs_file.h"

/* Names of the devices, or of the ports, in one directory. */
struct names {
	uint32_t n;
	char at[HCA_PORTS][VNIC_HCA_NAME];
};

/* Orders names by length first, so that "10" follows "9", and mlx5_10 follows mlx5_9. */
static int compare_names(const void *a, const void *b)
{
	size_t x = strlen(a), y = strlen(b);

	return x != y ? (x > y) - (x < y) : strcmp(a, b);
}

static bool is_printable(const char *name)
{
	for (; *name; name++)
		if (*name <= ' ' || *name > '~')
			return false;
	return true;
}

/* Adds a name. Keeps only the names that sort first if there are more than HCA_PORTS. */
static void add_name(struct names *names, const char *name)
{
	char *last = names->at[0];

	if (names->n < HCA_PORTS) {
		strcpy(names->at[names->n++], name);
		return;
	}
	for (uint32_t i = 1; i < names->n; i++)
		if (compare_names(names->at[i], last) > 0)
			last = names->at[i];
	if (compare_names(name, last) < 0)
		strcpy(last, name);
}

static void list_names(const char *path, struct names *names)
{
	DIR *dir = sysfs_open_dir(path);
	const struct dirent *entry;

	names->n = 0;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < VNIC_HCA_NAME &&
		    is_printable(entry->d_name))
			add_name(names, entry->d_name);
	if (dir)
		closedir(dir);
	qsort(names->at, names->n, sizeof(names->at[0]), compare_names);
}

/* --- Devices */

/* Reads node_type: "1: CA", and so on (enum rdma_node_type of Linux). */
static enum hca_kind read_kind(const char *dir)
{
	switch (sysfs_read_number("%s/node_type", dir)) {
	case 1: return HCA_INFINIBAND; /* or RoCE: the port's link_layer tells */
	case 4: return HCA_IWARP;
	default: return HCA_OTHER;
	}
}

/* Software devices have no driver in sysfs. rdma_rxe is known by the file `parent` in the device's
 * directory, urxe by its node description. */
static void read_driver(const char *dir, char driver[HCA_TEXT])
{
	char text[HCA_TEXT];

	if (!sysfs_read_link(driver, HCA_TEXT, "%s/device/driver", dir))
		return;
	if (!sysfs_read_text(text, sizeof(text), "%s/parent", dir))
		strcpy(driver, "rdma_rxe");
	else if (!sysfs_read_text(text, sizeof(text), "%s/node_desc", dir) && !strcmp(text, "urxe"))
		strcpy(driver, "urxe");
}

/*
 * Reads the MAC from which a GUID or an interface ID was made (RFC 4291, appendix A). False: it was
 * not made from a MAC.
 */
static bool mac_of_eui64(const uint8_t id[8], uint8_t mac[ETHER_MAC_LEN])
{
	if (id[3] != 0xff || id[4] != 0xfe)
		return false;
	memcpy(mac, id, 3);
	memcpy(mac + 3, id + 5, 3);
	mac[0] ^= 0x02;
	return true;
}

/* Reads node_guid, such as "5054:00ff:fe12:3456". Leaves `guid` as it is if the file is missing or
 * malformed. */
static void read_guid(const char *dir, uint8_t guid[8])
{
	char text[HCA_TEXT];
	unsigned int word[4];

	if (sysfs_read_text(text, sizeof(text), "%s/node_guid", dir) ||
	    sscanf(text, "%4x:%4x:%4x:%4x", &word[0], &word[1], &word[2], &word[3]) != 4)
		return;
	for (int i = 0; i < 4; i++) {
		guid[2 * i] = (uint8_t)(word[i] >> 8);
		guid[2 * i + 1] = (uint8_t)word[i];
	}
}

/* Sets p->mac to the MAC of the port's Ethernet interface; without one, to the MAC in the
 * link-local GID, else to that in the node GUID, else to 0. */
static void find_mac(const char *sys, struct hca_port *p)
{
	static const uint8_t link_local[8] = {0xfe, 0x80};

	if (hca_netdev_mac(sys, p->ndev, p->mac))
		return;
	for (uint32_t i = 0; i < p->n_gids; i++)
		if (!memcmp(p->gids[i].ip, link_local, sizeof(link_local)) &&
		    mac_of_eui64(p->gids[i].ip + 8, p->mac))
			return;
	if (!mac_of_eui64(p->guid, p->mac))
		memset(p->mac, 0, sizeof(p->mac));
}

/*
 * Whether the device has a verbs device, which ib_uverbs makes and programs open. When a device is
 * removed, its verbs device goes first. If the driver cannot revoke the contexts of programs
 * (rdma_rxe, for instance), the rest stays until programs have closed the verbs device.
 */
static bool has_verbs_device(const char *sys, const char *device)
{
	char path[PATH_MAX], ibdev[VNIC_HCA_NAME];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (snprintf(path, sizeof(path), "%s/class/infiniband_verbs", sys) >= PATH_MAX)
		return false;
	dir = sysfs_open_dir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = !sysfs_read_text(ibdev, sizeof(ibdev), "%s/%s/ibdev", path,
					 entry->d_name) &&
			!strcmp(ibdev, device);
	if (dir)
		closedir(dir);
	return found;
}

/* --- Ports */

/* Reads the state, such as "4: ACTIVE" (IBA volume 1, 14.2.5.6: PortState). */
static enum hca_state read_state(const char *port_dir)
{
	switch (sysfs_read_number("%s/state", port_dir)) {
	case 1:
	case 2:
	case 3: return HCA_DOWN;
	case 4:
	case 5: return HCA_ACTIVE;
	default: return HCA_UNKNOWN;
	}
}

/* Reads the rate, such as "100 Gb/sec (4X EDR)". Leaves *p as it is if the file is missing. */
static void read_rate(const char *port_dir, struct hca_port *p)
{
	char text[HCA_TEXT];
	unsigned int whole, tenth = 0;

	if (sysfs_read_text(text, sizeof(text), "%s/rate", port_dir))
		return;
	p->rate = port_rate_parse(text);
	if (strstr(text, "Gb/sec") && sscanf(text, "%7u.%1u", &whole, &tenth) >= 1 &&
	    whole <= 1000000)
		p->speed_mbps = whole * 1000 + tenth * 100;
}

static enum hca_kind kind_of_port(enum hca_kind device, const char *port_dir)
{
	char layer[HCA_TEXT];

	if (device != HCA_INFINIBAND)
		return device;
	sysfs_read_text(layer, sizeof(layer), "%s/link_layer", port_dir);
	if (!strcmp(layer, "Ethernet"))
		return HCA_ROCE;
	return strcmp(layer, "InfiniBand") ? HCA_OTHER : HCA_INFINIBAND;
}

/* Returns the port's path MTU, 0 = unknown. Only another urxed's tree has a file active_mtu. Linux
 * derives the MTU from the interface, and so does this function without that file. */
static uint16_t read_mtu(const char *sys, const char *port_dir, const char *ndev)
{
	uint32_t mtu = sysfs_read_number("%s/active_mtu", port_dir);

	if (mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096)
		return (uint16_t)mtu;
	return ndev[0] ? hca_netdev_path_mtu(sys, ndev) : 0;
}

/* Reads the P_Keys, one a file, such as "0xffff". */
static void read_pkeys(const char *port_dir, struct hca_port *p)
{
	char text[HCA_TEXT];

	for (uint32_t i = 0; i < VNIC_ATTACH_PKEYS; i++)
		if (sysfs_read_text(text, sizeof(text), "%s/pkeys/%u", port_dir, i) ||
		    sscanf(text, "%hx", &p->pkeys[i]) != 1)
			break;
}

static void read_port(const char *sys, const char *dir, struct hca_port *p)
{
	char port_dir[PATH_MAX];

	if (snprintf(port_dir, sizeof(port_dir), "%s/ports/%u", dir, p->number) >= PATH_MAX)
		return;
	p->kind = kind_of_port(p->kind, port_dir);
	p->state = read_state(port_dir);
	read_rate(port_dir, p);
	if (p->kind != HCA_ROCE)
		return;
	hca_gids_read(sys, port_dir, p);
	p->mtu = read_mtu(sys, port_dir, p->ndev);
	find_mac(sys, p);
	read_pkeys(port_dir, p);
}

static void scan_device(const char *sys, const char *device, struct hca_list *list)
{
	char dir[PATH_MAX], path[PATH_MAX];
	struct hca_port base = {0};
	struct names ports;
	struct stat st;

	if (snprintf(dir, sizeof(dir), "%s/class/infiniband/%s", sys, device) >= PATH_MAX ||
	    snprintf(path, sizeof(path), "%s/ports", dir) >= PATH_MAX)
		return;
	strcpy(base.device, device);
	base.inode = stat(dir, &st) ? 0 : st.st_ino;
	read_guid(dir, base.guid);
	base.kind = read_kind(dir);
	base.verbs = has_verbs_device(sys, device);
	read_driver(dir, base.driver);
	sysfs_read_text(base.firmware, sizeof(base.firmware), "%s/fw_ver", dir);
	list_names(path, &ports);
	for (uint32_t i = 0; i < ports.n && list->n < HCA_PORTS; i++) {
		unsigned long number = strtoul(ports.at[i], NULL, 10);

		if (!number || number > UINT8_MAX)
			continue;
		list->ports[list->n] = base;
		list->ports[list->n].number = (uint8_t)number;
		read_port(sys, dir, &list->ports[list->n++]);
	}
}

void hca_scan(const char *sys, const char *first, struct hca_list *list)
{
	char path[PATH_MAX];
	struct names devices;

	list->n = 0;
	if (snprintf(path, sizeof(path), "%s/class/infiniband", sys) >= PATH_MAX)
		return;
	if (first)
		scan_device(sys, first, list);
	list_names(path, &devices);
	for (uint32_t i = 0; i < devices.n; i++)
		if (!first || strcmp(devices.at[i], first) != 0)
			scan_device(sys, devices.at[i], list);
}

bool hca_port_is_rdma_rxe(const struct hca_port *p)
{
	return !strcmp(p->driver, "rdma_rxe");
}

const char *hca_kind_name(enum hca_kind kind)
{
	static const char *const names[] = {[HCA_ROCE] = "RoCE",
					    [HCA_INFINIBAND] = "InfiniBand",
					    [HCA_IWARP] = "iWARP",
					    [HCA_OTHER] = "other"};

	return names[kind];
}

const char *hca_state_name(enum hca_state state)
{
	static const char *const names[] = {
		[HCA_UNKNOWN] = "unknown", [HCA_DOWN] = "down", [HCA_ACTIVE] = "active"};

	return names[state];
}

const struct hca_port *hca_find_port(const struct hca_list *list, const char *device,
				     uint8_t number)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (!strcmp(list->ports[i].device, device) &&
		    (!number || list->ports[i].number == number))
			return &list->ports[i];
	return NULL;
}
