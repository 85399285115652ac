/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/show/report_print.h"

#include <string.h>

#include "common/json_fields.h"
#include "common/printable.h"
#include "urxe/show/text_table.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Prints one member of an object: title, then value. */
static void print_field(FILE *out, const json_t *object, const struct text_table_column *field)
{
	char text[TABLE_CELL];

	text_table_cell(object, field, text);
	fprintf(out, "%-12s %s\n", field->title, text);
}

/* --- The host */

static const struct text_table_column daemon_fields[] = {
	{"urxed", "version", TABLE_TEXT},       {"pid", "pid", TABLE_COUNT},
	{"uptime", "uptime_s", TABLE_DURATION}, {"directory", "run_dir", TABLE_TEXT},
	{"namespace", "netns", TABLE_COUNT},    {"clients", "clients", TABLE_COUNT},
};

static const struct text_table_column host_fields[] = {
	{"device", "device", TABLE_TEXT}, {"interface", "interface", TABLE_TEXT},
	{"MAC", "mac", TABLE_TEXT},       {"MTU", "mtu", TABLE_COUNT},
	{"link up", "up", TABLE_TEXT},
};

static const struct text_table_column gid_columns[] = {
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
	{
		fprintf(out, " 0x%04llx", (unsigned long long)json_integer_value(pkey));
	}
	putc('\n', out);
}

static void print_host(FILE *out, const json_t *report, bool all)
{
	const json_t *host = json_object_get(report, "host");
	size_t i;

	(void)all;
	for (i = 0; i < N(daemon_fields); i++)
		print_field(out, host, &daemon_fields[i]);
	for (i = 0; i < N(host_fields); i++)
		print_field(out, host, &host_fields[i]);
	print_pkeys(out, json_object_get(host, "pkeys"));
	putc('\n', out);
	text_table_print(out, json_object_get(host, "gids"), gid_columns, N(gid_columns));
}

/* --- Ports and leases */

static const struct text_table_column port_columns[] = {
	{"PORT", "number", TABLE_COUNT},
	{"KIND", "kind", TABLE_TEXT},
	{"NAME", "name", TABLE_TEXT},
	{"STATE", "state", TABLE_TEXT},
	{"IN FRAMES", "counters.in_frames", TABLE_COUNT},
	{"IN", "counters.in_bytes", TABLE_BYTES},
	{"OUT FRAMES", "counters.out_frames", TABLE_COUNT},
	{"OUT", "counters.out_bytes", TABLE_BYTES},
	{"DROPS", "drops", TABLE_SUM},
	{"FAILOVERS", "failovers", TABLE_COUNT},
	{"RESTARTS", "device.restarts", TABLE_COUNT},
	{"PAGES", "page_size", TABLE_BYTES},
};

static void print_ports(FILE *out, const json_t *report, bool all)
{
	(void)all;
	text_table_print(out, json_object_get(report, "ports"), port_columns, N(port_columns));
}

static const struct text_table_column lease_columns[] = {
	{"FIRST QPN", "qpn_first", TABLE_QPN},
	{"QPNS", "qpn_count", TABLE_COUNT},
	{"UID", "uid", TABLE_COUNT},
	{"QPS", "qps", TABLE_COUNT},
	{"REGIONS", "mrs", TABLE_COUNT},
	{"PROCESS", "process", TABLE_TEXT},
	{"JOB", "job", TABLE_TEXT},
};

static void print_leases(FILE *out, const json_t *report, bool all)
{
	(void)all;
	text_table_print(out, json_object_get(report, "leases"), lease_columns, N(lease_columns));
}

/* --- The device */

static const struct text_table_column hca_columns[] = {
	{"HCA", "device", TABLE_TEXT},
	{"PORT", "port", TABLE_COUNT},
	{"TYPE", "kind", TABLE_TEXT},
	{"DRIVER", "driver", TABLE_TEXT},
	{"FIRMWARE", "firmware", TABLE_TEXT},
	{"STATE", "state", TABLE_TEXT},
	{"MTU", "mtu", TABLE_COUNT},
	{"SPEED", "speed", TABLE_TEXT},
	{"INTERFACE", "interface", TABLE_TEXT},
	{"UPLINK", "uplink", TABLE_TEXT},
	{"ROCE", "roce", TABLE_TEXT},
	{"USE", "use", TABLE_TEXT},
};

/* Returns a copy of an HCA's entry, with texts for the columns of speed and use. */
static json_t *make_hca_row(const json_t *hca, const char *device)
{
	const json_t *speed = json_object_get(hca, "speed_gbps");
	const char *reason = json_get_text(hca, "reason");
	json_t *row = json_copy((json_t *)hca);

	if (json_is_number(speed))
		json_object_set_new(row, "speed",
				    json_sprintf("%g Gb/s", json_number_value(speed)));
	json_object_set_new(row, "use",
			    reason ? json_sprintf("not used: %s", reason)
				   : json_sprintf("backs %s", device));
	return row;
}

/* Prints a line that says which HCA, or software, backs the device, and then all HCAs. */
static void print_device(FILE *out, const json_t *report, bool all)
{
	const json_t *host = json_object_get(report, "host");
	const char *device = json_get_text(host, "device");
	json_t *rows = json_array(), *hca;
	const char *name = NULL;
	char text[TABLE_CELL];
	size_t i;

	(void)all;
	json_array_foreach(json_object_get(report, "hca"), i, hca)
	{
		json_array_append_new(rows, make_hca_row(hca, device ? device : "-"));
		if (json_is_true(json_object_get(hca, "used")))
			name = json_get_text(hca, "device");
	}
	print_field(out, host, &host_fields[0]);
	printable_copy(text, sizeof(text), name ? name : "software");
	fprintf(out, "%-12s %s\n", "backed by", text);
	if (json_array_size(rows))
		putc('\n', out);
	text_table_print(out, rows, hca_columns, N(hca_columns));
	json_decref(rows);
}

/* --- Queue pairs, memory regions and rdma_cm IDs */

static const struct text_table_column qp_columns[] = {
	{"PROCESS", "process", TABLE_TEXT},
	{"QPN", "qpn", TABLE_QPN},
	{"TYPE", "type", TABLE_TEXT},
	{"STATE", "state", TABLE_TEXT},
	{"PATH", "path", TABLE_TEXT},
	{"MEMORY", "memory", TABLE_TEXT},
	{"MTU", "path_mtu", TABLE_COUNT},
	{"SENDS", "sends", TABLE_COUNT},
	{"UNACKED", "packets", TABLE_COUNT},
	{"RECVS", "receives", TABLE_COUNT},
	{"SENT", "counters.tx_bytes", TABLE_BYTES},
	{"RECEIVED", "counters.rx_bytes", TABLE_BYTES},
	{"RESENT", "counters.retransmit", TABLE_TALLY},
	{"PEER QPN", "dest_qpn", TABLE_QPN},
	{"PEER", "dgid", TABLE_TEXT},
	{"SENDS BY", "sends_by", TABLE_TEXT},
	{"RECEIVES BY", "receives_by", TABLE_TEXT},
};

/* The last columns, which the table has only if a queue pair has a direct uplink. */
#define DIRECT_UPLINK_COLUMNS 2

/* Members that only --long prints, because the table has no room for them. */
static const struct text_table_column qp_fields[] = {
	{"own PSN", "sq_psn", TABLE_COUNT},        {"peer's PSN", "rq_psn", TABLE_COUNT},
	{"GID index", "sgid_index", TABLE_COUNT},  {"timeout", "timeout", TABLE_COUNT},
	{"retries left", "retries", TABLE_COUNT},  {"RNR retries", "rnr_retries", TABLE_COUNT},
	{"rate limit", "rate_limit", TABLE_COUNT},
};

static void print_qp(FILE *out, const json_t *qp)
{
	json_t *counters = json_object_get(qp, "counters"), *value;
	char text[TABLE_CELL];
	const char *name;
	size_t i;

	for (i = 0; i < N(qp_columns); i++)
		print_field(out, qp, &qp_columns[i]);
	for (i = 0; i < N(qp_fields); i++)
		print_field(out, qp, &qp_fields[i]);
	json_object_foreach(counters, name, value)
	{
		printable_copy(text, sizeof(text), name);
		fprintf(out, "  %-20s %lld\n", text, (long long)json_integer_value(value));
	}
	putc('\n', out);
}

static bool has_direct_uplink(const json_t *qps)
{
	json_t *qp;
	size_t i;

	json_array_foreach(qps, i, qp)
	{
		if (json_is_string(json_object_get(qp, "sends_by")))
			return true;
	}
	return false;
}

static void print_qps(FILE *out, const json_t *report, bool all)
{
	const json_t *qps = json_object_get(report, "qps");
	const size_t hidden = has_direct_uplink(qps) ? 0 : DIRECT_UPLINK_COLUMNS;
	json_t *qp;
	size_t i;

	if (!all) {
		text_table_print(out, qps, qp_columns, N(qp_columns) - hidden);
		return;
	}
	json_array_foreach(qps, i, qp)
	{
		print_qp(out, qp);
	}
}

static const struct text_table_column mr_columns[] = {
	{"PROCESS", "process", TABLE_TEXT}, {"KEY", "key", TABLE_HEX},
	{"PD", "pd", TABLE_COUNT},          {"ADDRESS", "iova", TABLE_TEXT},
	{"LENGTH", "length", TABLE_BYTES},  {"ACCESS", "access", TABLE_ACCESS},
};

static void print_mrs(FILE *out, const json_t *report, bool all)
{
	(void)all;
	text_table_print(out, json_object_get(report, "mrs"), mr_columns, N(mr_columns));
}

static const struct text_table_column id_columns[] = {
	{"PROCESS", "process", TABLE_TEXT},  {"ID", "id", TABLE_COUNT},
	{"SPACE", "space", TABLE_TEXT},      {"TYPE", "type", TABLE_TEXT},
	{"STATE", "state", TABLE_TEXT},      {"CM", "cm", TABLE_TEXT},
	{"EVENTS", "events", TABLE_COUNT},   {"QPN", "qpn", TABLE_QPN},
	{"PEER QPN", "peer_qpn", TABLE_QPN}, {"SOURCE", "src", TABLE_TEXT},
	{"DESTINATION", "dst", TABLE_TEXT},
};

static void print_ids(FILE *out, const json_t *report, bool all)
{
	(void)all;
	text_table_print(out, json_object_get(report, "ids"), id_columns, N(id_columns));
}

static const struct text_table_column transport_columns[] = {
	{"PROCESS", "process", TABLE_TEXT}, {"QPS", "qps", TABLE_COUNT},
	{"MEMORY", "memory", TABLE_COUNT},  {"PATH", "path", TABLE_TEXT},
	{"PEER", "peer", TABLE_TEXT},       {"WHY", "why", TABLE_TEXT},
};

static void print_transports(FILE *out, const json_t *report, bool all)
{
	(void)all;
	text_table_print(out, json_object_get(report, "transports"), transport_columns,
			 N(transport_columns));
}

/* --- Counters */

static const struct text_table_column counter_columns[] = {
	{"OF", "of", TABLE_TEXT},
	{"COUNTER", "name", TABLE_TEXT},
	{"VALUE", "value", TABLE_COUNT},
	{"MEANING", "meaning", TABLE_TEXT},
};

static void print_counters(FILE *out, const json_t *report, bool all)
{
	json_t *rows = json_array(), *row;
	size_t i;

	json_array_foreach(json_object_get(report, "counters"), i, row)
	{
		if (all || json_get_number(row, "value"))
			json_array_append(rows, row);
	}
	text_table_print(out, rows, counter_columns, N(counter_columns) - !all);
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
	print_ports(out, report, false);
}

/* --- Topics */

static const struct topic {
	const char *name;
	const char *key;
	bool asks; /* needs the states of processes, for which the daemon asks them */
	void (*print)(FILE *out, const json_t *report, bool all);
} topics[] = {
	{"host", "host", false, print_host},
	{"device", "hca", false, print_device},
	{"port", "ports", false, print_ports},
	{"qp", "qps", true, print_qps},
	{"mr", "mrs", true, print_mrs},
	{"counter", "counters", true, print_counters},
	{"lease", "leases", true, print_leases},
	{"id", "ids", false, print_ids},
	{"transport", "transports", true, print_transports},
};

static const struct topic *find_topic(const char *name)
{
	size_t i;

	for (i = 0; i < N(topics); i++)
		if (!strcmp(name, topics[i].name))
			return &topics[i];
	return NULL;
}

const char *report_print_topic(size_t i)
{
	return i < N(topics) ? topics[i].name : NULL;
}

bool report_print_asks_processes(const char *topic)
{
	return find_topic(topic)->asks;
}

bool report_print_is_topic(const char *topic)
{
	return find_topic(topic);
}

void report_print_text(FILE *out, const json_t *report, const char *topic, bool all)
{
	const struct topic *t = topic ? find_topic(topic) : NULL;

	if (t)
		t->print(out, report, all);
	else
		print_overview(out, report);
}

/* jansson's callback: writes a part of JSON, and escapes DEL, the only control character that
 * jansson does not escape. DEL occurs in texts and names only. Returns 0 or -1. */
static int write_json(const char *text, size_t len, void *ctx)
{
	FILE *out = ctx;
	const char *del;
	size_t plain;

	while (len) {
		del = memchr(text, 0x7f, len);
		plain = del ? (size_t)(del - text) : len;
		if (fwrite(text, 1, plain, out) != plain || (del && fputs("\\u007f", out) < 0))
			return -1;
		plain += del != NULL;
		text += plain;
		len -= plain;
	}
	return 0;
}

void report_print_json(FILE *out, const json_t *report, const char *topic)
{
	const struct topic *t = topic ? find_topic(topic) : NULL;
	json_t *part = t ? json_pack("{s:O?}", t->key, json_object_get(report, t->key)) : NULL;

	json_dump_callback(t ? part : report, write_json, out, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	putc('\n', out);
	json_decref(part);
}
