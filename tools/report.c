/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "rundir.h"
#include "snapshot.h"

#define COUNTER_TEXT(id, name, text) text,
static const char *const drop_texts[] = {SWITCH_DROP_LIST(COUNTER_TEXT)};
static const char *const vnic_texts[] = {VNIC_COUNTER_LIST(COUNTER_TEXT)};

/* A text that may be no UTF-8, which JSON wants. */
static json_t *any_text(const char *s)
{
	json_t *text = json_string(s);

	return text ? text : json_string("?");
}

/* --- The host */

static json_t *mac_text(const uint8_t mac[ETHER_MAC_LEN])
{
	return json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
			    mac[5]);
}

static json_t *gid_list(const struct host *h)
{
	const struct vnic_attach_gid *gids;
	struct vnic_attach_port port;
	char text[INET6_ADDRSTRLEN];
	json_t *list = json_array();
	uint32_t i;

	host_port(h, &port);
	gids = port.gids;
	for (i = 0; i < VNIC_ATTACH_GIDS; i++) {
		if (!gids[i].valid)
			continue;
		inet_ntop(AF_INET6, gids[i].raw, text, sizeof(text));
		json_array_append_new(list,
				      json_pack("{s:i, s:s, s:s, s:i}", "index", (int)i, "gid",
						text, "type", gids[i].v1 ? "rocev1" : "rocev2",
						"vlan", (int)gids[i].vlan));
	}
	return list;
}

static json_t *pkey_list(const struct host *h)
{
	json_t *list = json_array();
	uint32_t i;

	for (i = 0; i < h->n_pkeys; i++)
		json_array_append_new(list, json_integer(h->pkeys[i]));
	return list;
}

static json_t *host_part(const struct report *r)
{
	const struct host *h = r->clients->host;

	return json_pack("{s:s, s:s, s:i, s:I, s:o, s:I, s:b, s:o, s:i, s:o, s:o, s:o, s:i}",
			 "device", "urxe0", "version", URXE_VERSION, "pid", (int)getpid(),
			 "uptime_s", (json_int_t)(r->uptime_ns / 1000000000), "run_dir",
			 any_text(r->run_dir), "netns", (json_int_t)rundir_netns(), "private",
			 (int)r->private, "mac", mac_text(h->mac), "mtu", (int)h->mtu, "interface",
			 any_text(h->ndev), "gids", gid_list(h), "pkeys", pkey_list(h), "clients",
			 (int)r->clients->n);
}

/* --- Ports */

static const char *state_name(const struct vnic_device *dev)
{
	static const char *const names[] = {[VNIC_DEVICE_DOWN] = "down",
					    [VNIC_DEVICE_ACTIVE] = "active",
					    [VNIC_DEVICE_BROKEN] = "broken"};

	return names[dev ? vnic_device_state(dev) : VNIC_DEVICE_DOWN];
}

static json_t *process_port(const struct client *c)
{
	const uint64_t *n = c->port.dev ? vnic_device_counters(c->port.dev) : NULL;
	json_t *counters = json_object();
	int pid = vnic_server_pid(c->conn), i;

	for (i = 0; i < VNIC_COUNTER_COUNT; i++)
		json_object_set_new(counters, vnic_counter_name(i),
				    json_integer(n ? (json_int_t)n[i] : 0));
	return json_pack("{s:o, s:s, s:i, s:s, s:i, s:o}", "port", json_sprintf("process %d", pid),
			 "kind", "process", "pid", pid, "state", state_name(c->port.dev), "mtu",
			 HOST_MTU, "counters", counters);
}

static json_t *uplink_port(const struct uplink *u)
{
	uint64_t n[NETDEV_COUNTER_COUNT];
	json_t *counters = json_object();
	int i;

	netdev_counters(u->port, n);
	for (i = 0; i < NETDEV_COUNTER_COUNT; i++)
		json_object_set_new(counters, netdev_counter_name(i),
				    json_integer((json_int_t)n[i]));
	return json_pack("{s:o, s:s, s:n, s:s, s:i, s:o}", "port", any_text(u->spec), "kind",
			 "uplink", "pid", "state", "active", "mtu", (int)u->mtu, "counters",
			 counters);
}

static json_t *port_part(const struct report *r)
{
	const struct vswitch *sw = r->clients->sw;
	json_t *list = json_array();
	const struct client *c;
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++)
		json_array_append_new(list, uplink_port(&sw->uplinks[i]));
	for (c = r->clients->list; c; c = c->next)
		if (c->joined)
			json_array_append_new(list, process_port(c));
	return list;
}

/* --- Leases */

/* A process's name, as far as /proc still has it. */
static json_t *program(pid_t pid)
{
	char path[32], name[32] = "";
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, name, sizeof(name) - 1);
		close(fd);
	}
	if (n <= 0)
		return json_null();
	name[strcspn(name, "\n")] = '\0';
	return any_text(name);
}

static json_t *user(pid_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) ? json_null() : json_integer(st.st_uid);
}

static json_t *lease_part(const struct report *r)
{
	const struct lease_table *t = &r->clients->sw->leases;
	json_t *list = json_array();
	const struct client *c;
	uint32_t block;

	for (block = 0; block < LEASE_BLOCKS; block++) {
		for (c = t->owner[block] ? r->clients->list : NULL; c; c = c->next) {
			pid_t pid = vnic_server_pid(c->conn);

			if (t->owner[block] != &c->port)
				continue;
			json_array_append_new(list,
					      json_pack("{s:i, s:i, s:i, s:o, s:o}", "qpn_first",
							(int)(block << LEASE_SHIFT), "qpn_count",
							(int)LEASE_QPNS, "pid", (int)pid, "uid",
							user(pid), "program", program(pid)));
		}
	}
	return list;
}

/* --- Counters */

static void add_counter(json_t *list, const char *of, const char *name, uint64_t value,
			const char *meaning)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s}", "of", of, "name", name,
					      "value", (json_int_t)value, "meaning", meaning));
}

static json_t *counter_part(const struct report *r)
{
	uint64_t nics[VNIC_COUNTER_COUNT];
	json_t *list = json_array();
	struct switch_stats all;
	uint32_t i;

	switch_totals(r->clients->sw, &all);
	client_counters(r->clients, nics);
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		add_counter(list, "switch", switch_drop_name(i), all.drops[i], drop_texts[i]);
	for (i = 0; i < VNIC_COUNTER_COUNT; i++)
		add_counter(list, "vnic", vnic_counter_name(i), nics[i], vnic_texts[i]);
	return list;
}

/* --- All */

int report_make(const struct report *r)
{
	json_t *all = json_pack("{s:o, s:o, s:o, s:o}", "host", host_part(r), "ports", port_part(r),
				"leases", lease_part(r), "counters", counter_part(r));
	char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
	int fd = text ? snapshot_make(text, strlen(text)) : -ENOMEM;

	free(text);
	json_decref(all);
	return fd;
}
