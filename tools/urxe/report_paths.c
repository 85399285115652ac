/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/report_paths.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool is_ours(const json_t *report, const char *gid)
{
	const json_t *gids = json_object_get(json_object_get(report, "host"), "gids");
	json_t *entry;
	size_t i;

	json_array_foreach(gids, i, entry)
	{
		if (!strcmp(text_of(entry, "gid"), gid))
			return true;
	}
	return false;
}

/* NULL where nobody holds the QPN. */
static const json_t *lease_of_qpn(const json_t *report, json_int_t qpn)
{
	json_t *lease;
	size_t i;

	json_array_foreach(json_object_get(report, "leases"), i, lease)
	{
		json_int_t first = number_of(lease, "qpn_first");

		/* Unsigned: a stranger's numbers may be far apart. */
		if (qpn >= first &&
		    (uint64_t)qpn - (uint64_t)first < (uint64_t)number_of(lease, "qpn_count"))
			return lease;
	}
	return NULL;
}

static const json_t *lease_of_process(const json_t *report, json_int_t pid)
{
	json_t *lease;
	size_t i;

	json_array_foreach(json_object_get(report, "leases"), i, lease)
	{
		if (number_of(lease, "pid") == pid)
			return lease;
	}
	return NULL;
}

/* A way that frames go. */
struct way {
	const char *path;
	const char *why;
	const char *peer;
	const json_t *lease; /* of the peer; NULL: not on this host, or gone */
};

static struct way find_way(const json_t *report, const json_t *qp)
{
	const char *gid = text_of(qp, "dgid");
	struct way way = {.peer = gid};

	if (!is_ours(report, gid)) {
		way.path = "uplink";
		way.why = "another host";
		return way;
	}
	way.path = json_is_true(json_object_get(qp, "direct")) ? "direct" : "switch";
	way.lease = lease_of_qpn(report, number_of(qp, "dest_qpn"));
	if (!way.lease) {
		way.why = "the peer has gone";
		return way;
	}
	way.peer = text_of(way.lease, "process");
	if (!strcmp(way.path, "direct"))
		way.why = "same host and user";
	else if (number_of(json_object_get(report, "host"), "captures"))
		way.why = "somebody captures";
	else if (number_of(way.lease, "uid") !=
		 number_of(lease_of_process(report, number_of(qp, "pid")), "uid"))
		way.why = "another user";
	else
		way.why = "not introduced";
	return way;
}

static json_t *find_row(const json_t *rows, const json_t *qp, const struct way *way)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (number_of(row, "pid") == number_of(qp, "pid") &&
		    !strcmp(text_of(row, "peer"), way->peer) &&
		    !strcmp(text_of(row, "path"), way->path))
			return row;
	}
	return NULL;
}

static void add(json_t *row, const char *key, json_int_t n)
{
	json_object_set_new(row, key, json_integer(number_of(row, key) + n));
}

static void count(json_t *rows, const json_t *qp, const struct way *way)
{
	json_t *row = find_row(rows, qp, way);

	if (!row) {
		row = json_pack("{s:O?, s:O?, s:s, s:O?, s:s, s:s}", "process",
				json_object_get(qp, "process"), "pid", json_object_get(qp, "pid"),
				"peer", way->peer, "peer_pid", json_object_get(way->lease, "pid"),
				"path", way->path, "why", way->why);
		json_array_append_new(rows, row);
	}
	add(row, "qps", 1);
	add(row, "memory", json_is_true(json_object_get(qp, "memory")));
}

void report_paths_add(json_t *report)
{
	json_t *rows = json_array(), *qp;
	size_t i;

	json_array_foreach(json_object_get(report, "qps"), i, qp)
	{
		struct way way;

		if (!json_is_string(json_object_get(qp, "dgid"))) {
			json_object_set_new(qp, "path", json_null());
			continue;
		}
		way = find_way(report, qp);
		json_object_set_new(qp, "path", json_string(way.path));
		count(rows, qp, &way);
	}
	json_object_set_new(report, "transports", rows);
}
