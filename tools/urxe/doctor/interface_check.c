/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <dirent.h>
#include <limits.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/rxe.h>

#define NET       "/sys/class/net"
#define FULL_PATH 4096 /* the largest path MTU of RoCE, in bytes of payload */

/* Reads a number of an interface, decimal or 0x; 0 if it cannot be read. */
static unsigned long read_number(const char *name, const char *file)
{
	char path[PATH_MAX], text[32] = "";
	FILE *in;

	snprintf(path, sizeof(path), NET "/%s/%s", name, file);
	in = fopen(path, "re");
	if (!in)
		return 0;
	if (!fgets(text, sizeof(text), in))
		text[0] = '\0';
	fclose(in);
	return strtoul(text, NULL, 0);
}

static bool is_ethernet_up(const char *name)
{
	return read_number(name, "type") == ARPHRD_ETHER &&
	       (read_number(name, "flags") & (IFF_UP | IFF_LOOPBACK)) == IFF_UP;
}

static void check_interface(struct findings *f, const char *name)
{
	uint32_t mtu = (uint32_t)read_number(name, "mtu"), path = urxe_max_path_mtu(mtu);
	char remedy[64 + NAME_MAX];

	snprintf(remedy, sizeof(remedy), "ip link set dev %s mtu 4200", name);
	if (path >= FULL_PATH)
		finding_add(f, "MTU", FINDING_OK, NULL, "%s carries packets of %u bytes", name,
			    path);
	else
		finding_add(f, "MTU", FINDING_NOTE, remedy,
			    "%s has an MTU of %u: packets carry %u bytes, and with 4200 at both "
			    "ends 4096",
			    name, mtu, path);
}

void check_interfaces(struct findings *f)
{
	DIR *dir = opendir(NET);
	struct dirent *entry;
	bool any = false;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || !is_ethernet_up(entry->d_name))
			continue;
		check_interface(f, entry->d_name);
		any = true;
	}
	if (dir)
		closedir(dir);
	if (!any)
		finding_add(f, "MTU", FINDING_OK, NULL,
			    "no Ethernet interface is up: the device reaches this host only");
}
