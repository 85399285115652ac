/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tables and JSON of urxe show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "urxe/show/report_paths.h"
#include "urxe/show/report_print.h"
#include "urxe/show/text_table.h"

static const struct text_table_column columns[] = {
	{"NAME", "name", TABLE_TEXT},
	{"QPN", "qpn", TABLE_QPN},
	{"BYTES", "in.bytes", TABLE_BYTES},
};

static json_t *parse(const char *text)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(value);
	return value;
}

static void assert_table(const char *rows, const char *expected)
{
	json_t *value = parse(rows);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	text_table_print(out, value, columns, 3);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	json_decref(value);
}

static void columns_are_as_wide_as_their_longest_cell(void **state)
{
	(void)state;
	assert_table("[{\"name\": \"a\", \"qpn\": 17, \"in\": {\"bytes\": 1500}},"
		     " {\"name\": \"longer\", \"qpn\": 16777215, \"in\": {\"bytes\": 7}}]",
		     "NAME         QPN   BYTES\n"
		     "a       0x000011  1.5 kB\n"
		     "longer  0xffffff     7 B\n");
}

static void utf8_letters_count_as_one_column(void **state)
{
	(void)state;
	assert_table("[{\"name\": \"\\u00e4\\u20ac\", \"qpn\": 1}, {\"name\": \"abcde\"}]",
		     "NAME        QPN  BYTES\n"
		     "\u00e4\u20ac     0x000001      -\n"
		     "abcde         -      -\n");
}

static void values_of_wrong_type_show_as_a_dash(void **state)
{
	(void)state;
	assert_table("[]", "");
	assert_table("{\"name\": \"a\"}", "");
	assert_table("[1, {\"name\": 5, \"qpn\": \"x\", \"in\": 3}]", "NAME  QPN  BYTES\n"
								      "-       -      -\n"
								      "-       -      -\n");
	/* Control characters for the terminal are replaced. */
	assert_table("[{\"name\": \"a\\u001b[2J\\u007f\"}]", "NAME    QPN  BYTES\n"
							     "a?[2J?    -      -\n");
}

static void assert_cell(enum text_table_format format, const char *number, const char *expected)
{
	const struct text_table_column column = {"", "n", format};
	json_t *row = json_pack("{s:o}", "n", parse(number));
	char text[TABLE_CELL];

	text_table_cell(row, &column, text);
	assert_string_equal(text, expected);
	json_decref(row);
}

static void numbers_are_printed_with_units(void **state)
{
	(void)state;
	assert_cell(TABLE_BYTES, "0", "0 B");
	assert_cell(TABLE_BYTES, "999", "999 B");
	assert_cell(TABLE_BYTES, "1000", "1.0 kB");
	assert_cell(TABLE_BYTES, "999949", "999.9 kB");
	assert_cell(TABLE_BYTES, "999950", "1.0 MB");
	assert_cell(TABLE_BYTES, "9223372036854775807", "9.2 EB");
	assert_cell(TABLE_DURATION, "59", "59 s");
	assert_cell(TABLE_DURATION, "60", "1 min 00 s");
	assert_cell(TABLE_DURATION, "7500", "2 h 05 min");
	assert_cell(TABLE_DURATION, "180000", "2 d 02 h");
	assert_cell(TABLE_HEX, "255", "0xff");
	assert_cell(TABLE_COUNT, "-1", "-1");
	assert_cell(TABLE_ACCESS, "3", "local-read,local-write,remote-write");
	assert_cell(TABLE_SUM, "{\"a\": 1, \"b\": 41, \"c\": null}", "42");
}

static void each_topic_shows_its_part_of_the_report(void **state)
{
	json_t *report = parse("{\"host\": {\"pid\": 7}, \"leases\": [{\"pid\": 8}]}"), *part;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_true(report_print_is_topic("lease"));
	assert_false(report_print_is_topic("leases"));
	report_print_json(out, report, "lease");
	fclose(out);
	part = parse(text);
	assert_int_equal(json_object_size(part), 1);
	assert_true(json_equal(json_object_get(part, "leases"), json_object_get(report, "leases")));
	free(text);
	json_decref(part);
	json_decref(report);
}

static void zero_counters_show_only_with_all(void **state)
{
	json_t *report = parse("{\"counters\": [{\"of\": \"a\", \"name\": \"zero\", \"value\": 0},"
			       "{\"of\": \"a\", \"name\": \"one\", \"value\": 1}]}");
	char *text = NULL;
	size_t size;
	FILE *out;
	int all;

	(void)state;
	for (all = 0; all < 2; all++) {
		out = open_memstream(&text, &size);
		report_print_text(out, report, "counter", all);
		fclose(out);
		assert_non_null(strstr(text, "one"));
		assert_int_equal(!!strstr(text, "zero"), all);
		free(text);
	}
	json_decref(report);
}

/*
 * Two processes of one user, one process of another user, one in a PID namespace that the daemon
 * does not see, and a peer on another host.
 */
static const char leases[] = "{\"host\": {\"gids\": [{\"gid\": \"fe80::1\"}]}, \"leases\": ["
			     "{\"process\": \"a\", \"port\": 1, \"pid\": 1, \"uid\": 7, "
			     "\"qpn_first\": 4096, \"qpn_count\": 4096},"
			     "{\"process\": \"b\", \"port\": 2, \"pid\": 2, \"uid\": 7, "
			     "\"qpn_first\": 8192, \"qpn_count\": 4096},"
			     "{\"process\": \"c\", \"port\": 3, \"pid\": 3, \"uid\": 8, "
			     "\"qpn_first\": 12288, \"qpn_count\": 4096},"
			     "{\"process\": \"d\", \"port\": 4, \"pid\": 0, \"uid\": 7, "
			     "\"qpn_first\": 24576, \"qpn_count\": 4096}"
			     "]}";

static void assert_way(const char *qp, const char *path, const char *peer, const char *error,
		       int memory)
{
	json_t *report = parse(leases), *row;

	json_object_set_new(report, "qps", json_pack("[o, o]", parse(qp), parse(qp)));
	report_paths_add(report);
	row = json_array_get(json_object_get(report, "transports"), 0);
	assert_int_equal(json_array_size(json_object_get(report, "transports")), 1);
	assert_string_equal(json_string_value(json_object_get(row, "path")), path);
	assert_string_equal(json_string_value(json_object_get(row, "peer")), peer);
	assert_string_equal(json_string_value(json_object_get(row, "why")), error);
	assert_int_equal(json_integer_value(json_object_get(row, "qps")), 2);
	assert_int_equal(json_integer_value(json_object_get(row, "memory")), memory);
	row = json_array_get(json_object_get(report, "qps"), 1);
	assert_string_equal(json_string_value(json_object_get(row, "path")), path);
	json_decref(report);
}

static void each_qp_shows_its_path(void **state)
{
	json_t *report = parse(leases), *qp;

	(void)state;
	assert_way("{\"port\": 1, \"dgid\": \"fe80::2\", \"dest_qpn\": 8192}", "uplink", "fe80::2",
		   "another host", 0);
	assert_way("{\"port\": 1, \"dgid\": \"fe80::1\", \"dest_qpn\": 12287}", "switch", "b",
		   "not introduced", 0);
	assert_way("{\"port\": 1, \"dgid\": \"fe80::1\", \"dest_qpn\": 12288}", "switch", "c",
		   "another user", 0);
	assert_way("{\"port\": 1, \"dgid\": \"fe80::1\", \"dest_qpn\": 24576}", "switch", "d",
		   "a PID namespace that urxed does not see", 0);
	assert_way("{\"port\": 1, \"dgid\": \"fe80::1\", \"dest_qpn\": 8192, \"direct\": true}",
		   "direct", "b", "same host and user", 0);
	assert_way("{\"port\": 1, \"dgid\": \"fe80::1\", \"dest_qpn\": 8192, \"direct\": true,"
		   "\"memory\": true}",
		   "direct", "b", "same host and user", 2);
	assert_way("{\"port\": 1, \"dgid\": \"fe80::1\", \"dest_qpn\": 20000}", "switch", "fe80::1",
		   "the peer has ended", 0);
	assert_way("{\"port\": 1, \"dgid\": \"fe80::2\", \"dest_qpn\": 8192, \"hca\": true,"
		   "\"way_reason\": \"another host\"}",
		   "hca", "fe80::2", "another host", 0);
	assert_way("{\"port\": 1, \"dgid\": \"fe80::1\", \"dest_qpn\": 17, \"direct\": true,"
		   "\"way_reason\": \"same host and user\"}",
		   "direct", "fe80::1", "same host and user", 0);
	json_object_set_new(json_object_get(report, "host"), "captures", json_integer(1));
	json_object_set_new(
		report, "qps",
		json_pack("[{s:i, s:s, s:i}]", "port", 1, "dgid", "fe80::1", "dest_qpn", 8192));
	report_paths_add(report);
	qp = json_array_get(json_object_get(report, "transports"), 0);
	assert_string_equal(json_string_value(json_object_get(qp, "why")), "a capture runs");
	/* A datagram QP has no peer. */
	json_object_set_new(report, "qps", json_pack("[{s:i, s:n}]", "port", 1, "dgid"));
	report_paths_add(report);
	qp = json_array_get(json_object_get(report, "qps"), 0);
	assert_true(json_is_null(json_object_get(qp, "path")));
	assert_int_equal(json_array_size(json_object_get(report, "transports")), 0);
	json_decref(report);
}

static void assert_text_or_null(const json_t *qp, const char *name, const char *text)
{
	if (text)
		assert_string_equal(json_string_value(json_object_get(qp, name)), text);
	else
		assert_true(json_is_null(json_object_get(qp, name)));
}

/* A process with sockets on both members of a bond. The numbers are those of a hostile process,
 * too. */
static void direct_qps_show_the_members_of_a_bond(void **state)
{
	static const struct {
		const char *qp, *sends_by, *receives_by;
	} rows[] = {
		{"\"uplink\": true, \"sends_by_socket\": 1, \"receives_by_socket\": 0", "q", "p"},
		{"\"uplink\": true, \"sends_by_socket\": 0", "p", NULL},
		{"\"uplink\": true, \"sends_by_socket\": 2, \"receives_by_socket\": 7", NULL, NULL},
		{"\"uplink\": false, \"sends_by_socket\": 1, \"receives_by_socket\": 1", NULL,
		 NULL},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *report =
			parse("{\"leases\": [{\"port\": 1, \"pid\": 1, \"qpn_first\": 4096, "
			      "\"direct_uplinks\": [\"p\", \"q\"]}]}");
		json_t *qp;

		snprintf(text, sizeof(text), "{\"port\": 1, \"dgid\": \"fe80::2\", %s}",
			 rows[i].qp);
		qp = parse(text);
		json_object_set_new(report, "qps", json_pack("[o]", qp));
		report_paths_add(report);
		assert_text_or_null(qp, "sends_by", rows[i].sends_by);
		assert_text_or_null(qp, "receives_by", rows[i].receives_by);
		assert_null(json_object_get(qp, "sends_by_socket"));
		json_decref(report);
	}
}

/* The table has the columns of the members only if a queue pair has a direct uplink. */
static void members_of_a_bond_have_columns(void **state)
{
	static const char *const qps[] = {"{\"qpn\": 5, \"sends_by\": null}",
					  "{\"qpn\": 5, \"sends_by\": \"af_packet:eth1\"}"};
	char *text = NULL;
	size_t size;

	(void)state;
	for (int direct = 0; direct < 2; direct++) {
		json_t *report = json_pack("{s:[o]}", "qps", parse(qps[direct]));
		FILE *out = open_memstream(&text, &size);

		report_print_text(out, report, "qp", false);
		fclose(out);
		assert_int_equal(!!strstr(text, "SENDS BY"), direct);
		assert_int_equal(!!strstr(text, "RECEIVES BY"), direct);
		assert_int_equal(!!strstr(text, "af_packet:eth1"), direct);
		free(text);
		json_decref(report);
	}
}

/* A machine's queue pairs have its MAC, and GIDs that the host does not have. */
static void qps_to_machines_show_a_path_on_this_host(void **state)
{
	static const char machines[] =
		"{\"host\": {\"mac\": \"h\", \"gids\": [{\"gid\": \"fe80::1\"}]}, \"leases\": ["
		"{\"process\": \"a\", \"port\": 1, \"pid\": 1, \"uid\": 7, \"mac\": \"h\", "
		"\"qpn_first\": 4096},"
		"{\"process\": \"m\", \"port\": 2, \"pid\": 2, \"uid\": 7, \"mac\": \"x\", "
		"\"qpn_first\": 8192},"
		"{\"process\": \"n\", \"port\": 3, \"pid\": 3, \"uid\": 8, \"mac\": \"y\", "
		"\"qpn_first\": 12288}"
		"]}";
	static const struct {
		int port, qpn;
		const char *dgid, *dmac, *path, *why;
	} rows[] = {
		{1, 8192, "fe80::2", "x", "switch", "a virtual machine"},
		{2, 4096, "fe80::1", "h", "switch", "a virtual machine"},
		{1, 12288, "fe80::3", "y", "switch", "another user"},
		{2, 12288, "fe80::3", "y", "switch", "another user"},
		/* The same number on another host. */
		{1, 8192, "fe80::2", "z", "uplink", "another host"},
		{1, 8192, "fe80::2", "h", "uplink", "another host"},
	};
	json_t *report, *row;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		report = parse(machines);
		json_object_set_new(report, "qps",
				    json_pack("[{s:i, s:s, s:s, s:i}]", "port", rows[i].port,
					      "dgid", rows[i].dgid, "dmac", rows[i].dmac,
					      "dest_qpn", rows[i].qpn));
		report_paths_add(report);
		row = json_array_get(json_object_get(report, "transports"), 0);
		assert_string_equal(json_string_value(json_object_get(row, "path")), rows[i].path);
		assert_string_equal(json_string_value(json_object_get(row, "why")), rows[i].why);
		json_decref(report);
	}
}

/* What a hostile process would like root's terminal to do. */
#define HOSTILE "a\\u001b[2J\\u007f\\u009b31m\\u202eb"

static bool is_harmless(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	for (; *p; p++)
		if ((*p < ' ' && *p != '\n') || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0) ||
		    (*p == 0xe2 && p[1] == 0x80 && p[2] == 0xae))
			return false;
	return true;
}

static void no_form_prints_control_characters(void **state)
{
	json_t *report =
		parse("{\"host\": {\"device\": \"" HOSTILE "\"}, \"qps\": [{\"type\": \"" HOSTILE
		      "\", \"dgid\": \"" HOSTILE "\", \"" HOSTILE "\": 1, \"counters\": {\"" HOSTILE
		      "\": 5}}], \"counters\": [{\"of\": \"" HOSTILE "\", \"name\": \"" HOSTILE
		      "\", \"value\": 1}]}");
	const char *topic;
	char *text = NULL;
	size_t size, i;
	FILE *out;

	(void)state;
	report_paths_add(report);
	for (i = 0; (topic = report_print_topic(i)); i++) {
		out = open_memstream(&text, &size);
		assert_non_null(out);
		report_print_text(out, report, NULL, false);
		report_print_text(out, report, topic, false);
		report_print_text(out, report, topic, true);
		report_print_json(out, report, topic);
		report_print_json(out, report, NULL);
		fclose(out);
		assert_true(is_harmless(text));
		free(text);
	}
	json_decref(report);
}

/* JSON keeps the text, by escapes. */
static void json_escapes_control_characters(void **state)
{
	json_t *report = parse("{\"host\": \"" HOSTILE "\"}"), *found;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	report_print_json(out, report, NULL);
	fclose(out);
	found = parse(text);
	assert_true(json_equal(found, report));
	json_decref(found);
	json_decref(report);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_longest_cell),
		cmocka_unit_test(utf8_letters_count_as_one_column),
		cmocka_unit_test(values_of_wrong_type_show_as_a_dash),
		cmocka_unit_test(numbers_are_printed_with_units),
		cmocka_unit_test(each_topic_shows_its_part_of_the_report),
		cmocka_unit_test(qps_to_machines_show_a_path_on_this_host),
		cmocka_unit_test(each_qp_shows_its_path),
		cmocka_unit_test(direct_qps_show_the_members_of_a_bond),
		cmocka_unit_test(members_of_a_bond_have_columns),
		cmocka_unit_test(zero_counters_show_only_with_all),
		cmocka_unit_test(no_form_prints_control_characters),
		cmocka_unit_test(json_escapes_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
