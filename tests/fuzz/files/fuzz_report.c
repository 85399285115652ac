/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes as a daemon's report, and as a process's answer, which `urxe show` prints in every
 * form. The text and the JSON contain no characters that control a terminal; an answer costs no
 * more memory than the units that its reader counts, whatever its length.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"
#include "urxe/show/report_paths.h"
#include "urxe/show/report_print.h"
#include "urxed/report/process_states.h"
#include "urxed/report/state_reader.h"

/* What a unit may cost: that of a process with one block of numbers fit in 255 MB. */
#define UNIT 129u
/* The report without rows: a row for each counter, of which an answer counts each once. */
#define BASE 98304u
/* The block of numbers of a process, and the one that it may lease while it is asked. */
#define QPNS  8192u
#define UNITS (QPNS * PROCESS_STATES_QP_UNITS + STATE_MRS_MAX * PROCESS_STATES_MR_UNITS)
/* So few that some answers need more. */
#define FEW_UNITS 100u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- The memory of jansson's values */

static size_t used, most;

static void *count_malloc(size_t size)
{
	void *p = malloc(size);

	used += malloc_usable_size(p);
	if (used > most)
		most = used;
	return p;
}

static void count_free(void *p)
{
	used -= malloc_usable_size(p);
	free(p);
}

/* --- What is printed */

/* Reads UTF-8 by itself, so that it does not share errors with printable.c. */
static void check_character(uint32_t code)
{
	require(code == '\n' || code >= ' ');
	require(code < 0x7f || code > 0x9f);
	require((code < 0x202a || code > 0x202e) && (code < 0x2066 || code > 0x2069));
	require(code != 0x200e && code != 0x200f && code != 0x061c);
}

static void check_text(const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		unsigned char first = (unsigned char)*text++;
		uint32_t code = first, tail = 0;

		require(first < 0x80 || first >= 0xc2);
		if (first >= 0xc2) {
			tail = 1 + (first >= 0xe0) + (first >= 0xf0);
			code = first & (0x3fu >> tail);
		}
		for (; tail; tail--) {
			require(text < end && (*text & 0xc0) == 0x80);
			code = code << 6 | (*text++ & 0x3f);
		}
		check_character(code);
	}
}

static void print_topic(FILE *out, const json_t *report, const char *topic)
{
	report_print_text(out, report, topic, false);
	report_print_text(out, report, topic, true);
	report_print_json(out, report, topic);
}

static void print_all(json_t *report)
{
	const char *topic;
	char *text = NULL;
	size_t len, i;
	FILE *out = open_memstream(&text, &len);

	require(out);
	report_paths_add(report);
	print_topic(out, report, NULL);
	for (i = 0; (topic = report_print_topic(i)); i++)
		print_topic(out, report, topic);
	fclose(out);
	check_text(text, len);
	free(text);
}

/* --- The two ways in */

static void read_report(const char *text, size_t len)
{
	json_t *report = json_loadb(text, len, 0, NULL);

	if (!report)
		return;
	print_all(report);
	json_decref(report);
}

/* One process with one block of numbers. */
static json_t *make_report(void)
{
	return json_pack("{s:[], s:[{s:i, s:s, s:i, s:i, s:b, s:i, s:i}]}", "counters", "leases",
			 "port", 5, "process", "program-7", "pid", 7, "uid", 1000, "asked", 1,
			 "qpn_first", 4096, "qpn_count", (int)QPNS);
}

/* Returns the units that an answer spends, until it is refused or ends. */
static uint32_t count_units(const char *text, size_t len, uint32_t units)
{
	struct state_limits limits = {.qps = QPNS, .units = units};
	char error[STATE_ERROR];

	most = used;
	json_decref(state_read(text, len, &limits, error));
	require(!used);
	require(limits.units <= units);
	require(most <= BASE + UNIT * (units - limits.units));
	return units - limits.units;
}

static void read_answer(const char *text, size_t len)
{
	uint32_t units = count_units(text, len, UNITS);
	json_t *report;

	count_units(text, len, FEW_UNITS);
	report = make_report();
	require(report);
	most = used;
	process_states_add(report, text, len);
	print_all(report);
	require(most <= BASE + UNIT * units);
	json_decref(report);
	require(!used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_set_alloc_funcs(count_malloc, count_free);
	read_report((const char *)data, size);
	read_answer((const char *)data, size);
	return 0;
}
