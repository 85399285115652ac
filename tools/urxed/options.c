/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/options.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/quantity.h"
#include "urxed/hca/hca_select.h"
#include "urxed/hostnet/address_pin.h"
#include "urxed/hostnet/host.h"
#include "urxed/switch/tables/fdb.h"

/* The column of --help in which descriptions begin. */
#define HELP_COLUMN 23

static int append_value(const char *name, const char **list, uint32_t *n, uint32_t max,
			const char *value, char error[OPTIONS_ERROR])
{
	if (*n == max) {
		snprintf(error, OPTIONS_ERROR, "%s %s exceeds the limit: at most %u are allowed",
			 name, value, max);
		return -ENOSPC;
	}
	list[(*n)++] = value;
	return 0;
}

static int set_uplink(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	struct daemon_options *d = &o->daemon;

	return append_value("uplink", d->uplinks, &d->n_uplinks, SWITCH_UPLINKS, value, error);
}

static int set_bond(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	o->daemon.bond = bond_mode_parse(value);
	if (o->daemon.bond != BOND_NONE)
		return 0;
	snprintf(error, OPTIONS_ERROR, "bond %s is not a mode: active-backup or balance", value);
	return -EINVAL;
}

static int set_address(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	struct daemon_options *d = &o->daemon;
	struct host scratch = {0};

	if (host_add_text(&scratch, value, HOST_NO_UPLINK)) {
		snprintf(error, OPTIONS_ERROR,
			 "address %s is not a host's unicast address (neither loopback nor "
			 "unspecified) with prefix length and optional VLAN (1 to 4094); "
			 "examples: 192.0.2.1/24, 192.0.2.1/24@100",
			 value);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < d->n_addresses; i++) {
		struct host other = {0};

		host_add_text(&other, d->addresses[i], HOST_NO_UPLINK);
		if (host_find_address(&scratch, other.addresses[0].ip)) {
			snprintf(error, OPTIONS_ERROR, "address %s is given twice", value);
			return -EEXIST;
		}
	}
	return append_value("address", d->addresses, &d->n_addresses, DAEMON_ADDRESSES, value,
			    error);
}

static int set_pkey(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	struct daemon_options *d = &o->daemon;
	struct host scratch = {0};

	if (host_add_pkey(&scratch, value)) {
		snprintf(error, OPTIONS_ERROR, "pkey %s is not a P_Key; example: 0x8001", value);
		return -EINVAL;
	}
	return append_value("pkey", d->pkeys, &d->n_pkeys, DAEMON_PKEYS, value, error);
}

static int set_fdb(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	struct daemon_options *d = &o->daemon;
	struct address_pin pin;
	struct fdb_key key;
	const char *port;

	if (fdb_parse(value, &key, &port) && address_pin_parse(value, &pin)) {
		snprintf(error, OPTIONS_ERROR,
			 "fdb %s is not MAC[@VLAN]=PORT or ADDR[@VLAN]=MAC; example: "
			 "52:54:00:12:34:56=2",
			 value);
		return -EINVAL;
	}
	return append_value("fdb", d->fdb, &d->n_fdb, DAEMON_FDB, value, error);
}

static int set_fault(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	char text[FAULT_OPTION_ERROR];
	int rc = fault_option_parse(value, &o->daemon.impair, text);

	if (rc)
		snprintf(error, OPTIONS_ERROR, "%s", text);
	return rc;
}

static int set_direct_uplink(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	return direct_uplink_trust_add(&o->daemon.direct_uplink, value, error);
}

static int set_vm_user(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	return user_list_add(&o->daemon.vm_users, "vm-user", value, error);
}

static int set_mtu(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	uint64_t mtu;

	if (!quantity_read(value, quantity_count, &mtu) || mtu < HOST_MTU_LEAST || mtu > HOST_MTU) {
		snprintf(error, OPTIONS_ERROR, "mtu %s is not a number of bytes from %d to %d",
			 value, HOST_MTU_LEAST, HOST_MTU);
		return -EINVAL;
	}
	o->daemon.mtu = (uint16_t)mtu;
	return 0;
}

static int set_hca(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	return hca_choice_parse(value, &o->daemon.hca, error);
}

static int set_device(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	if (!hca_is_device_name(value)) {
		snprintf(error, OPTIONS_ERROR,
			 "device %s is not a valid device name: letters, digits, '_', '-' and "
			 "'.', at most %d",
			 value, VNIC_HCA_NAME - 1);
		return -EINVAL;
	}
	o->daemon.device = value;
	return 0;
}

static int set_run_dir(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	(void)error;
	o->run_dir = value;
	return 0;
}

static int set_group(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	const struct group *group = getgrnam(value);

	if (!group) {
		snprintf(error, OPTIONS_ERROR, "group %s does not exist", value);
		return -EINVAL;
	}
	/* A program accepts only a daemon of root or of its own user (vnic_attach_connect). */
	if (geteuid()) {
		snprintf(error, OPTIONS_ERROR, "group %s: only root's daemon can serve other users",
			 value);
		return -EPERM;
	}
	o->daemon.group = group->gr_gid;
	return 0;
}

static int set_private(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	(void)error;
	o->daemon.private = !strcmp(value, "yes");
	return 0;
}

static int set_foreground(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	(void)error;
	o->foreground = !strcmp(value, "yes");
	return 0;
}

const struct options_row options_rows[OPTIONS] = {
	{"uplink", "SPEC", true,
	 "connect the switch to an Ethernet: af_packet:IFACE, af_xdp:IFACE,\n"
	 "tap:NAME, pcap:FILE or dpdk:ARGS; or to a virtual machine:\n"
	 "qemu:PATH[,connect|,dgram[,remote=PATH]][,mtu=N] or\n"
	 "vhost:PATH[,connect]; may be given more than once",
	 set_uplink},
	{"bond", "MODE", false,
	 "join the uplinks to an Ethernet: active-backup: frames use the first\n"
	 "healthy uplink; balance: frames use all healthy uplinks",
	 set_bond, true},
	{"address", "ADDR/LEN[@VLAN]", true,
	 "add an address of this host, optionally in a VLAN; may be given\n"
	 "more than once",
	 set_address},
	{"pkey", "0xNNNN", true,
	 "add an entry to the P_Key table, which has the default, 0xffff,\n"
	 "only without this option; may be given more than once",
	 set_pkey},
	{"fdb", "MAC[@VLAN]=PORT|ADDR[@VLAN]=MAC", true,
	 "deliver frames to MAC only to the uplink or virtual machine PORT,\n"
	 "which is a port's number or SPEC; or let only the station MAC use\n"
	 "the IP address ADDR; may be given more than once",
	 set_fdb},
	{"fault", "KEY=VALUE[,KEY=VALUE]...", false,
	 "impair the frames of the uplinks: drop, duplicate, reorder and\n"
	 "corrupt (a share: 1%), reorder-time and delay (a time: 100us),\n"
	 "seed (a number), way (both or out)",
	 set_fault},
	{"direct-uplink", "USER|@GROUP|none", true,
	 "let programs of USER or of GROUP's members use sockets of their own\n"
	 "on an af_packet: or af_xdp: uplink, by which they can send and receive\n"
	 "any frame; those of root and of the daemon's user that run in its\n"
	 "network namespace always may, unless the option is none; may be given\n"
	 "more than once",
	 set_direct_uplink},
	{"vm-user", "USER|@GROUP", true,
	 "let urxe vm of USER or of GROUP's members connect virtual machines\n"
	 "to the switch; root and the daemon's user always may; may be given\n"
	 "more than once",
	 set_vm_user},
	{"hca", "auto|off|NAME[:PORT]", false,
	 "the HCA that backs the device: auto, the default: a RoCE port of an\n"
	 "uplink's interface; off: no HCA; NAME: the HCA NAME, also without\n"
	 "an uplink on its interface",
	 set_hca},
	{"device", "NAME", false, "the device's name; default: " HOST_DEVICE, set_device},
	{"mtu", "BYTES", false,
	 "limit the Ethernet payload of sent frames; default: the uplinks' MTU", set_mtu},
	{"run-dir", "DIR", false,
	 "directory with the daemon's sockets; default: $URXE_DIR, else\n"
	 "/run/urxe/NETNS (root), $XDG_RUNTIME_DIR/urxe/NETNS or\n"
	 "/tmp/urxe-UID/NETNS",
	 set_run_dir},
	{"group", "NAME", false, "let the members of the group NAME use root's daemon", set_group},
	{"private", NULL, false, "end when no client has been connected for 5 s", set_private},
	{"foreground", NULL, false, "stay in the foreground and log to standard error",
	 set_foreground},
};

const struct options_row *options_find(const char *name)
{
	for (uint32_t i = 0; i < OPTIONS; i++)
		if (!strcmp(options_rows[i].name, name))
			return &options_rows[i];
	return NULL;
}

int options_set(struct options *o, const struct options_row *row, const char *value,
		char error[OPTIONS_ERROR])
{
	if (!row->argument && !value)
		value = "yes";
	if (!value || !*value) {
		snprintf(error, OPTIONS_ERROR, "option %s needs a value%s%s", row->name,
			 row->argument ? ", " : ": yes or no", row->argument ? row->argument : "");
		return -EINVAL;
	}
	if (!row->argument && strcmp(value, "yes") && strcmp(value, "no")) {
		snprintf(error, OPTIONS_ERROR, "option %s is yes or no, not %s", row->name, value);
		return -EINVAL;
	}
	return row->set(o, value, error);
}

static void print_row(const struct options_row *row)
{
	const char *argument = row->argument ? row->argument : "";
	int width = printf("  --%s%s%s", row->name, row->argument ? " " : "", argument);
	const char *line = row->help;

	if (width >= HELP_COLUMN) {
		putchar('\n');
		width = 0;
	}
	for (; line; width = 0) {
		const char *end = strchr(line, '\n');

		printf("%*s%.*s\n", HELP_COLUMN - width, "",
		       (int)(end ? end - line : (long)strlen(line)), line);
		line = end ? end + 1 : NULL;
	}
}

void options_print(void)
{
	for (uint32_t i = 0; i < OPTIONS; i++)
		print_row(&options_rows[i]);
}
