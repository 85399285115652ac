/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/show/report_paths.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/attach_protocol.h>

#include "common/json_fields.h"

/* Maximum length of a row's key, with the NUL. If keys are cut, paths with the same rest share a
 * row. */
#define PATH_KEY 256

static const char *get_text(const json_t *object, const char *key)
{
	const char *text = json_get_text(object, key);

	return text ? text : "";
}

static bool is_host_gid(const json_t *report, const char *gid)
{
	const json_t *gids = json_object_get(json_object_get(report, "host"), "gids");
	json_t *entry;
	size_t i;

	json_array_foreach(gids, i, entry)
	{
		if (!strcmp(get_text(entry, "gid"), gid))
			return true;
	}
	return false;
}

/* An index of the report's leases. Without it, a search through all leases for each QP could take
 * too long. */
struct lease_index {
	const json_t *by_block[VNIC_BLOCKS];
	struct by_port {
		json_int_t port;
		const json_t *lease;
	} * by_port;
	size_t n;
	json_t *by_hca_qpn; /* leases of processes that have queue pairs with QPNs outside all
			       leases, by these QPNs */
};

static int compare_ports(const void *a, const void *b)
{
	json_int_t x = ((const struct by_port *)a)->port, y = ((const struct by_port *)b)->port;

	return (x > y) - (x < y);
}

static bool is_qpn(json_int_t qpn)
{
	return qpn >= 0 && qpn < (json_int_t)VNIC_BLOCKS * VNIC_LEASE_QPNS;
}

/*
 * Makes the index of the report's leases. The first of several leases with one QPN counts. NULL: no
 * memory.
 */
static struct lease_index *make_lease_index(const json_t *report)
{
	const json_t *leases = json_object_get(report, "leases");
	struct lease_index *index = calloc(1, sizeof(*index));
	json_t *lease;
	size_t i;

	if (index)
		index->by_port = calloc(json_array_size(leases) + 1, sizeof(*index->by_port));
	if (!index || !index->by_port) {
		free(index);
		return NULL;
	}
	json_array_foreach(leases, i, lease)
	{
		json_int_t first = json_get_number(lease, "qpn_first");

		index->by_port[index->n++] =
			(struct by_port){json_get_number(lease, "port"), lease};
		if (is_qpn(first) && !index->by_block[VNIC_BLOCK(first)])
			index->by_block[VNIC_BLOCK(first)] = lease;
	}
	qsort(index->by_port, index->n, sizeof(*index->by_port), compare_ports);
	return index;
}

static void free_lease_index(struct lease_index *index)
{
	if (index) {
		json_decref(index->by_hca_qpn);
		free(index->by_port);
	}
	free(index);
}

#define QPN_KEY 32

static const char *make_qpn_key(char key[QPN_KEY], json_int_t qpn)
{
	snprintf(key, QPN_KEY, "%lld", (long long)qpn);
	return key;
}

/* Returns a lease of the process that has the QPN; NULL: no process has it. */
static const json_t *find_lease_by_qpn(const struct lease_index *index, json_int_t qpn)
{
	const json_t *lease = is_qpn(qpn) ? index->by_block[VNIC_BLOCK(qpn)] : NULL;
	char key[QPN_KEY];

	return lease ? lease : json_object_get(index->by_hca_qpn, make_qpn_key(key, qpn));
}

static const json_t *find_lease_by_port(const struct lease_index *index, json_int_t port)
{
	const struct by_port key = {port, NULL}, *found;

	found = bsearch(&key, index->by_port, index->n, sizeof(key), compare_ports);
	return found ? found->lease : NULL;
}

/* Adds to the index the QPNs that are in no lease because an HCA has chosen them. The queue pair's
 * own entry in the report tells its process. */
static void index_hca_qpns(struct lease_index *index, const json_t *report)
{
	char key[QPN_KEY];
	json_t *qp;
	size_t i;

	index->by_hca_qpn = json_object();
	json_array_foreach(json_object_get(report, "qps"), i, qp)
	{
		json_int_t qpn = json_get_number(qp, "qpn");
		const json_t *lease = find_lease_by_port(index, json_get_number(qp, "port"));

		if (lease && is_qpn(qpn) && !index->by_block[VNIC_BLOCK(qpn)])
			json_object_set(index->by_hca_qpn, make_qpn_key(key, qpn), (json_t *)lease);
	}
}

/* The path of frames from a queue pair. */
struct frame_path {
	const char *path;
	const char *why;
	const char *peer;
	const json_t *lease; /* of the peer; NULL: on another host, or ended */
};

/*
 * Whether the lease is that of the virtual machine to which the queue pair sends: its MAC is the
 * queue pair's destination MAC. A virtual machine has a MAC of its own, and the report has the MAC
 * of each lease.
 */
static bool is_machine_of(const json_t *lease, const json_t *qp)
{
	const char *mac = get_text(lease, "mac");

	return *mac && !strcmp(mac, get_text(qp, "dmac"));
}

static const char *why_switch(const json_t *report, const struct lease_index *index,
			      const json_t *qp, const json_t *peer)
{
	const json_t *own = find_lease_by_port(index, json_get_number(qp, "port"));
	const char *mac = get_text(json_object_get(report, "host"), "mac");

	if (json_get_number(json_object_get(report, "host"), "captures"))
		return "a capture runs";
	if (json_get_number(peer, "uid") != json_get_number(own, "uid"))
		return "another user";
	/* Frames of a virtual machine go by the switch if its device process has no inbox. */
	if (strcmp(get_text(peer, "mac"), mac) || strcmp(get_text(own, "mac"), mac))
		return "a virtual machine";
	/* The daemon needs a process's PID to learn its user namespace. */
	if (!json_get_number(peer, "pid") || !json_get_number(own, "pid"))
		return "a PID namespace that urxed does not see";
	return "not introduced";
}

static struct frame_path find_path(const json_t *report, const struct lease_index *index,
				   const json_t *qp)
{
	const char *gid = get_text(qp, "dgid");
	struct frame_path p = {.peer = gid};

	if (json_is_true(json_object_get(qp, "hca"))) {
		p.path = "hca";
		p.why = get_text(qp, "way_reason");
		return p;
	}
	p.lease = find_lease_by_qpn(index, json_get_number(qp, "dest_qpn"));
	if (!is_host_gid(report, gid) && !is_machine_of(p.lease, qp)) {
		p.lease = NULL;
		p.path = json_is_true(json_object_get(qp, "uplink")) ? "direct-uplink" : "uplink";
		p.why = "another host";
		return p;
	}
	p.path = json_is_true(json_object_get(qp, "direct")) ? "direct" : "switch";
	if (!p.lease) {
		/* The peer may have a QPN that an HCA has chosen, which is in no lease. */
		p.why = *get_text(qp, "way_reason") && !strcmp(p.path, "direct")
				? "same host and user"
				: "the peer has ended";
		return p;
	}
	p.peer = get_text(p.lease, "process");
	if (!strcmp(p.path, "direct"))
		p.why = "same host and user";
	else
		p.why = why_switch(report, index, qp, p.lease);
	return p;
}

static void add_to_count(json_t *row, const char *key, json_int_t n)
{
	json_object_set_new(row, key, json_integer(json_get_number(row, key) + n));
}

/* Counts a queue pair in the row of `transports` for its process, path and peer, and adds the row
 * if it is missing. by_path: all rows, by a key of the processes' ports, the path and the peer. */
static void count_qp(json_t *rows, json_t *by_path, const json_t *qp, const struct frame_path *p)
{
	char key[PATH_KEY];
	json_t *row;

	snprintf(key, sizeof(key), "%lld %lld %s %s", (long long)json_get_number(qp, "port"),
		 (long long)json_get_number(p->lease, "port"), p->path, p->peer);
	row = json_object_get(by_path, key);
	if (!row) {
		row = json_pack("{s:O?, s:O?, s:s, s:O?, s:s, s:s}", "process",
				json_object_get(qp, "process"), "pid", json_object_get(qp, "pid"),
				"peer", p->peer, "peer_pid", json_object_get(p->lease, "pid"),
				"path", p->path, "why", p->why);
		/* A cut key may end within a character, so jansson must not check its UTF-8. */
		json_object_set_nocheck(by_path, key, row);
		json_array_append_new(rows, row);
	}
	add_to_count(row, "qps", 1);
	add_to_count(row, "memory", json_is_true(json_object_get(qp, "memory")));
}

static void add_path(const json_t *report, const struct lease_index *index, json_t *qp,
		     json_t *rows, json_t *by_path)
{
	struct frame_path p;

	if (!json_is_string(json_object_get(qp, "dgid"))) {
		bool hca = json_is_true(json_object_get(qp, "hca"));

		json_object_set_new(qp, "path", hca ? json_string("hca") : json_null());
		return;
	}
	p = find_path(report, index, qp);
	json_object_set_new(qp, "path", json_string(p.path));
	count_qp(rows, by_path, qp, &p);
}

/* Replaces the number of a process's socket by the name of the uplink on whose interface it is. */
static void name_uplink(json_t *qp, const json_t *uplinks, const char *number, const char *name)
{
	const json_t *socket = json_object_get(qp, number);
	json_t *uplink = json_is_integer(socket)
				 ? json_array_get(uplinks, (size_t)json_integer_value(socket))
				 : NULL;

	json_object_set_new(qp, name, uplink ? json_incref(uplink) : json_null());
	json_object_del(qp, number);
}

static void name_uplinks(const struct lease_index *index, json_t *qp)
{
	const json_t *lease = find_lease_by_port(index, json_get_number(qp, "port"));
	const bool direct = !strcmp(get_text(qp, "path"), "direct-uplink");
	const json_t *uplinks = direct ? json_object_get(lease, "direct_uplinks") : NULL;

	name_uplink(qp, uplinks, "sends_by_socket", "sends_by");
	name_uplink(qp, uplinks, "receives_by_socket", "receives_by");
}

void report_paths_add(json_t *report)
{
	json_t *rows = json_array(), *by_path = json_object(), *qp;
	struct lease_index *index = make_lease_index(report);
	size_t i;

	if (index)
		index_hca_qpns(index, report);
	json_array_foreach(index ? json_object_get(report, "qps") : NULL, i, qp)
	{
		add_path(report, index, qp, rows, by_path);
		name_uplinks(index, qp);
	}
	free_lease_index(index);
	json_decref(by_path);
	json_object_set_new(report, "transports", rows);
}
