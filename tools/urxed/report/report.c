/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "common/json_fields.h"
#include "common/printable.h"
#include "common/rundir.h"
#include "common/sealed_text.h"
#include "urxed/privilege/fd_guard.h"
#include "urxed/report/counter_row.h"
#include "urxed/report/report_hca.h"
#include "urxed/report/report_rdmacm.h"

static const struct counter_row switch_rows[] = {SWITCH_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row drop_rows[] = {SWITCH_DROP_LIST(COUNTER_ROW)};
static const struct counter_row vnic_rows[] = {VNIC_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row netdev_rows[] = {NETDEV_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row cm_rows[] = {CM_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row gsi_rows[] = {GSI_DROP_LIST(COUNTER_ROW)};
static const struct counter_row neigh_rows[] = {NEIGH_COUNTER_LIST(COUNTER_ROW)};

/* Returns a JSON string. JSON requires UTF-8, so bytes that are not, as a path may have, become
 * "?". */
static json_t *make_text(const char *s)
{
	json_t *text = json_string(s);
	char shown[PATH_MAX];

	if (text)
		return text;
	printable_copy(shown, sizeof(shown), s);
	return json_string(shown);
}

/* --- The host */

static json_t *make_mac(const uint8_t mac[ETHER_MAC_LEN])
{
	return json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
			    mac[5]);
}

static json_t *make_gids(const struct host *h)
{
	const struct vnic_attach_gid *gids;
	struct vnic_attach_port port;
	char text[INET6_ADDRSTRLEN];
	json_t *list = json_array();
	uint32_t i;

	host_fill_port(h, &port);
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

static json_t *make_pkeys(const struct host *h)
{
	json_t *list = json_array();
	uint32_t i;

	for (i = 0; i < h->n_pkeys; i++)
		json_array_append_new(list, json_integer(h->pkeys[i]));
	return list;
}

static json_t *make_host(const struct report *r)
{
	const struct host *h = r->sessions->host;

	return json_pack(
		"{s:s, s:s, s:i, s:I, s:o, s:I, s:I, s:b, s:o, s:i, s:b, s:o, s:o, s:o, s:i, s:i}",
		"device", h->device, "version", URXE_VERSION, "pid", (int)getpid(), "uptime_s",
		(json_int_t)(r->uptime_ns / 1000000000), "run_dir", make_text(r->run_dir), "netns",
		(json_int_t)rundir_netns(), "pidns", (json_int_t)rundir_pidns(), "private",
		(int)r->private, "mac", make_mac(h->mac), "mtu", (int)h->mtu, "up", (int)h->up,
		"interface", make_text(h->ndev), "gids", make_gids(h), "pkeys", make_pkeys(h),
		"clients", (int)r->sessions->n, "captures", (int)r->captures);
}

/* --- Ports */

/* Returns {name: n} for n values. */
static json_t *make_named_counters(const struct counter_row *rows, size_t n, const uint64_t *values)
{
	json_t *object = json_object();

	for (size_t i = 0; i < n; i++)
		json_object_set_new(object, rows[i].name, json_integer((json_int_t)values[i]));
	return object;
}

static const struct session *get_session(const struct switch_port *port)
{
	return (const struct session *)((const char *)port - offsetof(struct session, port));
}

static uint32_t get_uplink_index(const struct vswitch *sw, const struct switch_port *port)
{
	return (uint32_t)(port - sw->uplink_ports);
}

static bool is_member(const struct vswitch *sw, const struct switch_port *port)
{
	return port->uplink && bond_has(&sw->bond, get_uplink_index(sw, port));
}

static json_t *make_failovers(const struct vswitch *sw, const struct switch_port *port)
{
	if (!is_member(sw, port))
		return json_null();
	return json_integer((json_int_t)bond_failovers_of(&sw->bond, get_uplink_index(sw, port)));
}

static const char *get_port_state(const struct vswitch *sw, const struct switch_port *port)
{
	static const char *const names[] = {[VNIC_DEVICE_DOWN] = "down",
					    [VNIC_DEVICE_ACTIVE] = "active",
					    [VNIC_DEVICE_BROKEN] = "broken"};

	if (port->uplink &&
	    (!port->uplink->up || (port->uplink->port && !netdev_is_up(port->uplink->port))))
		return "down";
	if (is_member(sw, port))
		return bond_role(&sw->bond, get_uplink_index(sw, port));
	if (port->kind != SWITCH_PROCESS)
		return "active";
	return names[port->dev ? vnic_device_state(port->dev) : VNIC_DEVICE_DOWN];
}

/* Returns the counters that the vNIC or the uplink's driver keeps; null: the port has neither of
 * them. */
static json_t *make_device_counters(const struct switch_port *port)
{
	uint64_t n[NETDEV_COUNTER_COUNT];

	if (port->dev)
		return make_named_counters(COUNTER_ROWS(vnic_rows),
					   vnic_device_counters(port->dev));
	if (!port->uplink || !port->uplink->port)
		return json_null();
	netdev_counters(port->uplink->port, n);
	return make_named_counters(COUNTER_ROWS(netdev_rows), n);
}

static json_t *make_page_size(const struct switch_port *port)
{
	const uint64_t size =
		port->uplink && port->uplink->port ? netdev_page_size(port->uplink->port) : 0;

	return json_number_or_null((json_int_t)size);
}

static json_t *make_pid(const struct switch_port *port)
{
	if (port->kind != SWITCH_PROCESS)
		return json_null();
	return json_integer(vnic_server_pid(get_session(port)->conn));
}

static json_t *make_port(const struct vswitch *sw, const struct switch_port *port)
{
	return json_pack("{s:i, s:o, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "number",
			 (int)port->number, "name", make_text(port->name), "kind",
			 switch_port_kind_name(port->kind), "pid", make_pid(port), "state",
			 get_port_state(sw, port), "failovers", make_failovers(sw, port),
			 "page_size", make_page_size(port), "counters",
			 make_named_counters(COUNTER_ROWS(switch_rows), port->stats.counters),
			 "drops", make_named_counters(COUNTER_ROWS(drop_rows), port->stats.drops),
			 "device", make_device_counters(port));
}

static json_t *make_ports(const struct report *r)
{
	const struct switch_port *port = NULL;
	json_t *list = json_array();

	while ((port = switch_next_port(r->sessions->sw, port)))
		json_array_append_new(list, make_port(r->sessions->sw, port));
	return list;
}

/* --- Leases */

/* Returns the user of a process, as the kernel recorded it when the process connected; null:
 * unknown. /proc would show root as the owner of a process that is not dumpable. */
static json_t *make_uid(uid_t uid)
{
	return uid == (uid_t)-1 ? json_null() : json_integer(uid);
}

/*
 * Returns the names of the uplinks on which the process has sockets, in the order of its sockets.
 */
static json_t *make_direct_uplinks(const struct vswitch *sw, const struct session *s)
{
	const uint32_t members = s->has_uplink_socket ? s->uplink_members : 0;
	json_t *list = json_array();

	for (uint32_t i = 0; members >> i; i++)
		if (members >> i & 1)
			json_array_append_new(list, make_text(sw->uplink_ports[i].name));
	return list;
}

static json_t *make_lease(const struct vswitch *sw, uint32_t block, const struct session *c)
{
	pid_t pid = vnic_server_pid(c->conn);

	return json_pack("{s:i, s:i, s:i, s:i, s:o, s:i, s:o, s:o, s:b, s:o}", "qpn_first",
			 (int)(block << LEASE_SHIFT), "qpn_count", (int)LEASE_QPNS, "added_qpns",
			 (int)c->port.added.n, "port", (int)c->port.number, "process",
			 make_text(c->port.name), "pid", (int)pid, "uid",
			 make_uid(vnic_server_uid(c->conn)), "mac",
			 make_mac(vnic_server_qp_mac(c->conn)), "asked", (int)c->asked,
			 "direct_uplinks", make_direct_uplinks(sw, c));
}

static json_t *make_leases(const struct report *r)
{
	const struct lease_table *t = &r->sessions->sw->leases;
	json_t *list = json_array();
	uint32_t block;

	for (block = 0; block < LEASE_BLOCKS; block++)
		if (t->owner[block])
			json_array_append_new(list, make_lease(r->sessions->sw, block,
							       get_session(t->owner[block])));
	return list;
}

/* --- Counters */

static void add_counter(json_t *list, const char *of, const char *name, uint64_t value,
			const char *meaning)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s}", "of", of, "name", name,
					      "value", (json_int_t)value, "meaning", meaning));
}

static void add_counters(json_t *list, const char *of, const struct counter_row *rows, size_t n,
			 const uint64_t *values)
{
	for (size_t i = 0; i < n; i++)
		add_counter(list, of, rows[i].name, values[i], rows[i].text);
}

static json_t *make_counters(const struct report *r)
{
	uint64_t nics[VNIC_COUNTER_COUNT];
	json_t *list = json_array();
	struct switch_stats all;

	switch_totals(r->sessions->sw, &all);
	sessions_counters(r->sessions, nics);
	add_counters(list, "switch", COUNTER_ROWS(switch_rows), all.counters);
	add_counters(list, "drop", COUNTER_ROWS(drop_rows), all.drops);
	add_counters(list, "vnic", COUNTER_ROWS(vnic_rows), nics);
	add_counters(list, "cm", COUNTER_ROWS(cm_rows), cm_counters(r->rdmacm->ucma.cma.cm));
	add_counters(list, "gsi", COUNTER_ROWS(gsi_rows), r->rdmacm->gsi.drops);
	add_counters(list, "neigh", COUNTER_ROWS(neigh_rows), r->sessions->neigh->counters);
	add_counter(list, "bond", "failovers", bond_failovers(&r->sessions->sw->bond),
		    "failures of a bond's member after which others carried its connections");
	add_counter(list, "daemon", "fds_refused", fd_guard_count(),
		    "connections ended because a program sent descriptors");
	return list;
}

/* --- The report */

int report_make(const struct report *r)
{
	json_t *all =
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "host", make_host(r), "hca",
			  report_hcas(r->hca), "ports", make_ports(r), "leases", make_leases(r),
			  "ids", report_ids(r->rdmacm), "counters", make_counters(r));
	char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
	int fd = text ? sealed_text_make(text, strlen(text)) : -ENOMEM;

	free(text);
	json_decref(all);
	return fd;
}
