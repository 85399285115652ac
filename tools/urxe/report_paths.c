/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/report_paths.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char *get_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static json_int_t get_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
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

/* NULL: no process holds the QPN. */
static const json_t *find_lease_by_qpn(const json_t *report, json_int_t qpn)
{
	json_t *lease;
	size_t i;

	json_array_foreach(json_object_get(report, "leases"), i, lease)
	{
		json_int_t first = get_number(lease, "qpn_first");

		/* Unsigned: numbers from another process may overflow. */
		if (qpn >= first &&
		    (uint64_t)qpn - (uint64_t)first < (uint64_t)get_number(lease, "qpn_count"))
			return lease;
	}
	return NULL;
}

static const json_t *find_lease_by_pid(const json_t *report, json_int_t pid)
{
	json_t *lease;
	size_t i;

	json_array_foreach(json_object_get(report, "leases"), i, lease)
	{
		if (get_number(lease, "pid") == pid)
			return lease;
	}
	return NULL;
}

/* The path of frames from a queue pair. */
struct frame_path {
	const char *path;
	const char *why;
	const char *peer;
	const json_t *lease; /* of the peer; NULL: on another host, or ended */
};

static struct frame_path find_path(const json_t *report, const json_t *qp)
{
	const char *gid = get_text(qp, "dgid");
	struct frame_path p = {.peer = gid};

	if (!is_host_gid(report, gid)) {
		p.path = "uplink";
		p.why = "another host";
		return p;
	}
	p.path = json_is_true(json_object_get(qp, "direct")) ? "direct" : "switch";
	p.lease = find_lease_by_qpn(report, get_number(qp, "dest_qpn"));
	if (!p.lease) {
		p.why = "the peer has ended";
		return p;
	}
	p.peer = get_text(p.lease, "process");
	if (!strcmp(p.path, "direct"))
		p.why = "same host and user";
	else if (get_number(json_object_get(report, "host"), "captures"))
		p.why = "a capture runs";
	else if (get_number(p.lease, "uid") !=
		 get_number(find_lease_by_pid(report, get_number(qp, "pid")), "uid"))
		p.why = "another user";
	else
		p.why = "not introduced";
	return p;
}

static json_t *find_transport_row(const json_t *rows, const json_t *qp, const struct frame_path *p)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (get_number(row, "pid") == get_number(qp, "pid") &&
		    !strcmp(get_text(row, "peer"), p->peer) &&
		    !strcmp(get_text(row, "path"), p->path))
			return row;
	}
	return NULL;
}

static void add_to_count(json_t *row, const char *key, json_int_t n)
{
	json_object_set_new(row, key, json_integer(get_number(row, key) + n));
}

static void count_qp(json_t *rows, const json_t *qp, const struct frame_path *p)
{
	json_t *row = find_transport_row(rows, qp, p);

	if (!row) {
		row = json_pack("{s:O?, s:O?, s:s, s:O?, s:s, s:s}", "process",
				json_object_get(qp, "process"), "pid", json_object_get(qp, "pid"),
				"peer", p->peer, "peer_pid", json_object_get(p->lease, "pid"),
				"path", p->path, "why", p->why);
		json_array_append_new(rows, row);
	}
	add_to_count(row, "qps", 1);
	add_to_count(row, "memory", json_is_true(json_object_get(qp, "memory")));
}

void report_paths_add(json_t *report)
{
	json_t *rows = json_array(), *qp;
	size_t i;

	json_array_foreach(json_object_get(report, "qps"), i, qp)
	{
		struct frame_path p;

		if (!json_is_string(json_object_get(qp, "dgid"))) {
			json_object_set_new(qp, "path", json_null());
			continue;
		}
		p = find_path(report, qp);
		json_object_set_new(qp, "path", json_string(p.path));
		count_qp(rows, qp, &p);
	}
	json_object_set_new(report, "transports", rows);
}
