/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "view.h"

#include <string.h>

#include "table.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* One line of what an object has: title, then value. */
static void print_field(FILE *out, const json_t *object, const struct table_column *field)
{
	char text[TABLE_CELL];

	table_cell(object, field, text);
	fprintf(out, "%-12s %s\n", field->title, text);
}

/* --- The host */

static const struct table_column daemon_fields[] = {
	{"urxed", "version", TABLE_TEXT},       {"pid", "pid", TABLE_COUNT},
	{"uptime", "uptime_s", TABLE_DURATION}, {"directory", "run_dir", TABLE_TEXT},
	{"namespace", "netns", TABLE_COUNT},    {"clients", "clients", TABLE_COUNT},
};

static const struct table_column host_fields[] = {
	{"device", "device", TABLE_TEXT},
	{"interface", "interface", TABLE_TEXT},
	{"MAC", "mac", TABLE_TEXT},
	{"MTU", "mtu", TABLE_COUNT},
};

static const struct table_column gid_columns[] = {
	{"GID", "index", TABLE_COUNT},
	{"TYPE", "type", TABLE_TEXT},
	{"VLAN", "vlan", TABLE_COUNT},
	{"ADDRESS", "gid", TABLE_TEXT},
};

static void print_pkeys(FILE *out, const json_t *pkeys)
{
	json_t *pkey;
	size_t i;

	fprintf(out, "%-12s", "P_Keys");
	json_array_foreach(pkeys, i, pkey)
		fprintf(out, " 0x%04llx", (unsigned long long)json_integer_value(pkey));
	putc('\n', out);
}

static void print_host(FILE *out, const json_t *host, bool all)
{
	size_t i;

	(void)all;
	for (i = 0; i < N(daemon_fields); i++)
		print_field(out, host, &daemon_fields[i]);
	for (i = 0; i < N(host_fields); i++)
		print_field(out, host, &host_fields[i]);
	print_pkeys(out, json_object_get(host, "pkeys"));
	putc('\n', out);
	table_print(out, json_object_get(host, "gids"), gid_columns, N(gid_columns));
}

/* --- Ports and leases */

static const struct table_column port_columns[] = {
	{"PORT", "port", TABLE_TEXT},
	{"KIND", "kind", TABLE_TEXT},
	{"STATE", "state", TABLE_TEXT},
	{"MTU", "mtu", TABLE_COUNT},
	{"TX FRAMES", "counters.tx_frames", TABLE_COUNT},
	{"TX BYTES", "counters.tx_bytes", TABLE_BYTES},
	{"RX FRAMES", "counters.rx_frames", TABLE_COUNT},
	{"RX BYTES", "counters.rx_bytes", TABLE_BYTES},
};

static void print_ports(FILE *out, const json_t *ports, bool all)
{
	(void)all;
	table_print(out, ports, port_columns, N(port_columns));
}

static const struct table_column lease_columns[] = {
	{"FIRST QPN", "qpn_first", TABLE_QPN}, {"QPNS", "qpn_count", TABLE_COUNT},
	{"PID", "pid", TABLE_COUNT},           {"UID", "uid", TABLE_COUNT},
	{"PROGRAM", "program", TABLE_TEXT},
};

static void print_leases(FILE *out, const json_t *leases, bool all)
{
	(void)all;
	table_print(out, leases, lease_columns, N(lease_columns));
}

/* --- Counters */

static const struct table_column counter_columns[] = {
	{"OF", "of", TABLE_TEXT},
	{"COUNTER", "name", TABLE_TEXT},
	{"VALUE", "value", TABLE_COUNT},
	{"MEANING", "meaning", TABLE_TEXT},
};

static void print_counters(FILE *out, const json_t *counters, bool all)
{
	json_t *rows = json_array(), *row;
	size_t i;

	json_array_foreach(counters, i,
			   row) if (all || json_integer_value(json_object_get(row, "value")))
		json_array_append(rows, row);
	table_print(out, rows, counter_columns, N(counter_columns) - !all);
	json_decref(rows);
}

/* --- Overview */

static void print_overview(FILE *out, const json_t *report)
{
	const json_t *host = json_object_get(report, "host");
	size_t i;

	for (i = 0; i < N(daemon_fields); i++)
		print_field(out, host, &daemon_fields[i]);
	for (i = 0; i < N(host_fields); i++)
		print_field(out, host, &host_fields[i]);
	if (json_array_size(json_object_get(report, "ports")))
		putc('\n', out);
	print_ports(out, json_object_get(report, "ports"), false);
}

/* --- Topics */

static const struct topic {
	const char *name;
	const char *key;
	void (*print)(FILE *out, const json_t *part, bool all);
} topics[] = {
	{"host", "host", print_host},
	{"port", "ports", print_ports},
	{"counter", "counters", print_counters},
	{"lease", "leases", print_leases},
};

static const struct topic *find(const char *name)
{
	size_t i;

	for (i = 0; i < N(topics); i++)
		if (!strcmp(name, topics[i].name))
			return &topics[i];
	return NULL;
}

const char *view_topic(size_t i)
{
	return i < N(topics) ? topics[i].name : NULL;
}

bool view_known(const char *topic)
{
	return find(topic);
}

void view_print(FILE *out, const json_t *report, const char *topic, bool all)
{
	const struct topic *t = topic ? find(topic) : NULL;

	if (t)
		t->print(out, json_object_get(report, t->key), all);
	else
		print_overview(out, report);
}

void view_json(FILE *out, const json_t *report, const char *topic)
{
	const struct topic *t = topic ? find(topic) : NULL;
	json_t *part = t ? json_pack("{s:O?}", t->key, json_object_get(report, t->key)) : NULL;

	json_dumpf(t ? part : report, out, JSON_INDENT(2));
	putc('\n', out);
	json_decref(part);
}
