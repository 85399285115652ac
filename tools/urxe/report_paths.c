/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/report_paths.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/attach.h>

/* Longest identification of a row; ways whose longer ones begin alike are one row. */
#define WAY_KEY 256

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

/* Finds leases by QPN and by process: a report has as many queue pairs as leases have numbers. */
struct lease_index {
	const json_t *by_block[VNIC_PROCESSES];
	struct by_pid {
		json_int_t pid;
		const json_t *lease;
	} * by_pid;
	size_t n;
};

static int compare_pids(const void *a, const void *b)
{
	json_int_t x = ((const struct by_pid *)a)->pid, y = ((const struct by_pid *)b)->pid;

	return (x > y) - (x < y);
}

static bool is_qpn(json_int_t qpn)
{
	return qpn >= 0 && qpn < (json_int_t)VNIC_PROCESSES * VNIC_LEASE_QPNS;
}

/* Of two leases with one number the first one counts. NULL: no memory. */
static struct lease_index *make_index(const json_t *report)
{
	const json_t *leases = json_object_get(report, "leases");
	struct lease_index *index = calloc(1, sizeof(*index));
	json_t *lease;
	size_t i;

	if (index)
		index->by_pid = calloc(json_array_size(leases) + 1, sizeof(*index->by_pid));
	if (!index || !index->by_pid) {
		free(index);
		return NULL;
	}
	json_array_foreach(leases, i, lease)
	{
		json_int_t first = number_of(lease, "qpn_first");

		index->by_pid[index->n++] = (struct by_pid){number_of(lease, "pid"), lease};
		if (is_qpn(first) && !index->by_block[VNIC_PROCESS(first)])
			index->by_block[VNIC_PROCESS(first)] = lease;
	}
	qsort(index->by_pid, index->n, sizeof(*index->by_pid), compare_pids);
	return index;
}

static void free_index(struct lease_index *index)
{
	if (index)
		free(index->by_pid);
	free(index);
}

/* NULL where nobody holds the QPN. */
static const json_t *lease_of_qpn(const struct lease_index *index, json_int_t qpn)
{
	return is_qpn(qpn) ? index->by_block[VNIC_PROCESS(qpn)] : NULL;
}

static const json_t *lease_of_process(const struct lease_index *index, json_int_t pid)
{
	const struct by_pid key = {pid, NULL}, *found;

	found = bsearch(&key, index->by_pid, index->n, sizeof(key), compare_pids);
	return found ? found->lease : NULL;
}

/* A way that frames go. */
struct way {
	const char *path;
	const char *why;
	const char *peer;
	const json_t *lease; /* of the peer; NULL: not on this host, or gone */
};

static struct way find_way(const json_t *report, const struct lease_index *index, const json_t *qp)
{
	const char *gid = text_of(qp, "dgid");
	struct way way = {.peer = gid};

	if (!is_ours(report, gid)) {
		way.path = "uplink";
		way.why = "another host";
		return way;
	}
	way.path = json_is_true(json_object_get(qp, "direct")) ? "direct" : "switch";
	way.lease = lease_of_qpn(index, number_of(qp, "dest_qpn"));
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
		 number_of(lease_of_process(index, number_of(qp, "pid")), "uid"))
		way.why = "another user";
	else
		way.why = "not introduced";
	return way;
}

static void add(json_t *row, const char *key, json_int_t n)
{
	json_object_set_new(row, key, json_integer(number_of(row, key) + n));
}

/* by_way: the rows by what they are the sum of. */
static void count(json_t *rows, json_t *by_way, const json_t *qp, const struct way *way)
{
	char key[WAY_KEY];
	json_t *row;

	snprintf(key, sizeof(key), "%lld %s %s", (long long)number_of(qp, "pid"), way->path,
		 way->peer);
	row = json_object_get(by_way, key);
	if (!row) {
		row = json_pack("{s:O?, s:O?, s:s, s:O?, s:s, s:s}", "process",
				json_object_get(qp, "process"), "pid", json_object_get(qp, "pid"),
				"peer", way->peer, "peer_pid", json_object_get(way->lease, "pid"),
				"path", way->path, "why", way->why);
		/* The key may end in the middle of a character. */
		json_object_set_nocheck(by_way, key, row);
		json_array_append_new(rows, row);
	}
	add(row, "qps", 1);
	add(row, "memory", json_is_true(json_object_get(qp, "memory")));
}

static void add_path(const json_t *report, const struct lease_index *index, json_t *qp,
		     json_t *rows, json_t *by_way)
{
	struct way way;

	if (!json_is_string(json_object_get(qp, "dgid"))) {
		json_object_set_new(qp, "path", json_null());
		return;
	}
	way = find_way(report, index, qp);
	json_object_set_new(qp, "path", json_string(way.path));
	count(rows, by_way, qp, &way);
}

void report_paths_add(json_t *report)
{
	json_t *rows = json_array(), *by_way = json_object(), *qp;
	struct lease_index *index = make_index(report);
	size_t i;

	json_array_foreach(index ? json_object_get(report, "qps") : NULL, i, qp)
	{
		add_path(report, index, qp, rows, by_way);
	}
	free_index(index);
	json_decref(by_way);
	json_object_set_new(report, "transports", rows);
}
