/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/options.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/quantity.h"
#include "urxed/hostnet/host.h"
#include "urxed/switch/fdb.h"

/* Where --help begins to explain. */
#define HELP_COLUMN 23

static int append(const char *name, const char **list, uint32_t *n, uint32_t max, const char *value,
		  char error[OPTIONS_ERROR])
{
	if (*n == max) {
		snprintf(error, OPTIONS_ERROR, "%s %s is one too many: there may be %u", name,
			 value, max);
		return -ENOSPC;
	}
	list[(*n)++] = value;
	return 0;
}

static int set_uplink(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	struct daemon_options *d = &o->daemon;

	return append("uplink", d->uplinks, &d->n_uplinks, SWITCH_UPLINKS, value, error);
}

static int set_address(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	struct daemon_options *d = &o->daemon;
	struct host scratch = {0};

	if (host_add_text(&scratch, value, HOST_NO_UPLINK)) {
		snprintf(error, OPTIONS_ERROR,
			 "address %s is not an address of a host with its prefix length, as "
			 "192.0.2.1/24 is, or in a VLAN of 1 to 4094, as 192.0.2.1/24@100 is",
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
	return append("address", d->addresses, &d->n_addresses, DAEMON_ADDRESSES, value, error);
}

static int set_pkey(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	struct daemon_options *d = &o->daemon;
	struct host scratch = {0};

	if (host_add_pkey(&scratch, value)) {
		snprintf(error, OPTIONS_ERROR, "pkey %s is not a P_Key, as 0x8001 is", value);
		return -EINVAL;
	}
	return append("pkey", d->pkeys, &d->n_pkeys, DAEMON_PKEYS, value, error);
}

static int set_fdb(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	struct daemon_options *d = &o->daemon;
	struct fdb_key key;
	const char *port;

	if (fdb_parse(value, &key, &port)) {
		snprintf(error, OPTIONS_ERROR,
			 "fdb %s is not MAC[@VLAN]=PORT, as 52:54:00:12:34:56=2 is", value);
		return -EINVAL;
	}
	return append("fdb", d->fdb, &d->n_fdb, DAEMON_FDB, value, error);
}

static int set_fault(struct options *o, const char *value, char error[OPTIONS_ERROR])
{
	char text[IMPAIR_ERROR];
	int rc = impair_parse(value, &o->daemon.fault, text);

	if (rc)
		snprintf(error, OPTIONS_ERROR, "%s", text);
	return rc;
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
	/* vnic_attach_connect trusts nobody else. */
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
	 "join a real Ethernet: af_packet:IFACE, af_xdp:IFACE, tap:NAME,\n"
	 "pcap:FILE, dpdk:ARGS, or a virtual machine by\n"
	 "qemu:PATH[,connect|,dgram] or vhost:PATH[,connect]; may be given\n"
	 "more than once",
	 set_uplink},
	{"address", "ADDR/LEN[@VLAN]", true,
	 "one more address of this host, in a VLAN or not; may be given\n"
	 "more than once",
	 set_address},
	{"pkey", "0xNNNN", true,
	 "the next entry of the P_Key table, instead of 0xffff alone;\n"
	 "may be given more than once",
	 set_pkey},
	{"fdb", "MAC[@VLAN]=PORT", true,
	 "a MAC that an uplink or virtual machine, by its number or its SPEC,\n"
	 "has for itself; may be given more than once",
	 set_fdb},
	{"fault", "KEY=VALUE[,KEY=VALUE]...", false,
	 "spoil the frames of the uplinks: drop, duplicate, reorder, corrupt\n"
	 "(shares, as 1% is), reorder-time, delay (as 100us is), seed, and\n"
	 "way, which is both or out",
	 set_fault},
	{"mtu", "BYTES", false,
	 "send no larger Ethernet payload, though the uplinks may carry more", set_mtu},
	{"run-dir", "DIR", false,
	 "where clients find the daemon; default $URXE_DIR, else\n"
	 "/run/urxe/NETNS (root), $XDG_RUNTIME_DIR/urxe/NETNS or\n"
	 "/tmp/urxe-UID/NETNS",
	 set_run_dir},
	{"group", "NAME", false, "let the members of a group use root's daemon, too", set_group},
	{"private", NULL, false, "leave when no client has been there for 5 s", set_private},
	{"foreground", NULL, false, "stay in the foreground, log to standard error",
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
