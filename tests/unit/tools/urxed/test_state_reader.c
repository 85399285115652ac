/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What urxe show accepts of the document in which a process states its QPs and MRs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "urxed/report/state_reader.h"

#define UNITS 1000

static char error[STATE_ERROR];
static struct state_limits limits;

static json_t *read_text(const char *text)
{
	limits = (struct state_limits){.qps = 2, .units = UNITS};
	error[0] = '\0';
	return state_read(text, strlen(text), &limits, error);
}

static void assert_refused(const char *text, const char *reason)
{
	assert_null(read_text(text));
	assert_non_null(strstr(error, reason));
}

static void document_of_a_process_is_read(void **state)
{
	json_t *found = read_text(
		"{\"gone\":false,\"pid\":7,\"program\":\"a\\\\b\",\"qps\":[{\"qpn\":17,"
		"\"type\":\"RC\",\"dgid\":null,\"direct\":true,\"later\":\"x\","
		"\"counters\":{\"timeout\":3,\"odd\":1}},{\"qpn\":18}],\"mrs\":[{\"key\":1,"
		"\"iova\":\"0x1000\"}],\"counters\":{\"tx_packets\":5}}");
	const json_t *qp = json_array_get(json_object_get(found, "qps"), 0);

	(void)state;
	assert_non_null(found);
	assert_int_equal(json_array_size(json_object_get(found, "qps")), 2);
	assert_int_equal(json_integer_value(json_object_get(qp, "qpn")), 17);
	assert_string_equal(json_string_value(json_object_get(qp, "type")), "RC");
	assert_true(json_is_null(json_object_get(qp, "dgid")));
	assert_true(json_is_true(json_object_get(qp, "direct")));
	/* Names that no process writes are left out. */
	assert_null(json_object_get(qp, "later"));
	assert_int_equal(json_object_size(json_object_get(qp, "counters")), 1);
	assert_int_equal(json_integer_value(json_object_get(found, "n_mrs")), 1);
	assert_int_equal(json_object_size(json_object_get(found, "counters")), 1);
	json_decref(found);
	found = read_text("{ }");
	assert_non_null(found);
	json_decref(found);
}

static void malformed_documents_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{",
		"{} {}",
		"{\"qps\":{}}",
		"{\"qps\":[5]}",
		"{\"qps\":[{}",
		"{\"qps\":[{},]}",
		"{\"qps\":[{\"qpn\"}]}",
		"{\"mrs\":[[]]}",
		"{\"x\":{}}",
		"{\"qps\":[{\"later\":[[[[]]]]}]}",
		"{\"pid\":-1}",
		"{\"pid\":1.5}",
		"{\"pid\":nul}",
		"{\"pid\":}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_null(read_text(wrong[i]));
		assert_true(error[0]);
	}
	assert_refused("{\"qps\":[{\"qpn\":\"x\"}]}", "wrong type");
	assert_refused("{\"qps\":[{\"type\":1}]}", "wrong type");
	assert_refused("{\"counters\":{\"timeout\":null}}", "a counter in it is not a number");
	assert_refused("{\"pid\":1000000000000000000}", "too large");
}

static void only_printable_ascii_is_accepted(void **state)
{
	(void)state;
	assert_refused("{\"program\":\"\033[2J\"}", "no process writes");
	assert_refused("{\"program\":\"\177\"}", "no process writes");
	assert_refused("{\"program\":\"\xc2\x9b\"}", "no process writes");
	assert_refused("{\"program\":\"a\\", "no process writes");
	assert_refused("{\"program\":\"\\u001b[2J\"}", "no process writes");
	assert_refused("{\"counters\":{\"\\u009b\":1}}", "no process writes");
	assert_refused("{\"\u202e\":1}", "no process writes");
	assert_refused("{\"counters\":{\"\xc2\x9b\":1}}", "no process writes");
	assert_refused("{\"program\":\"0123456789012345678901234567890123456789"
		       "012345678901234567890123\"}",
		       "too long");
}

static void process_has_no_more_qps_than_numbers(void **state)
{
	(void)state;
	assert_refused("{\"qps\":[{},{},{}]}", "queue pairs");
}

/* The document costs what it says, and a refused one may cost no more than the limit. */
static void memory_is_limited(void **state)
{
	const uint32_t n = UNITS;
	char *text = malloc(20 + 3 * (size_t)n);
	uint32_t i;

	(void)state;
	assert_non_null(text);
	json_decref(read_text("{\"mrs\":[{},{\"key\":1}]}"));
	assert_int_equal(limits.units, UNITS - 2 * 16 - 1);
	strcpy(text, "{\"mrs\":[");
	for (i = 0; i < n; i++)
		strcat(text, i ? ",{}" : "{}");
	strcat(text, "]}");
	assert_refused(text, "urxe show keeps");
	free(text);
}

/* Rows beyond the limit are counted. */
static void many_mrs_are_counted(void **state)
{
	const size_t n = STATE_MRS_MAX + 5, room = 20 + 3 * n;
	char *text = malloc(room), *end;
	json_t *found;
	size_t i;

	(void)state;
	assert_non_null(text);
	end = text + sprintf(text, "{\"mrs\":[{}");
	for (i = 1; i < n; i++)
		end += sprintf(end, ",{}");
	end += sprintf(end, "]}");
	limits = (struct state_limits){.qps = 2, .units = UINT32_MAX};
	found = state_read(text, (size_t)(end - text), &limits, error);
	assert_non_null(found);
	assert_int_equal(json_array_size(json_object_get(found, "mrs")), STATE_MRS_MAX);
	assert_int_equal(json_integer_value(json_object_get(found, "n_mrs")), n);
	json_decref(found);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document_of_a_process_is_read),
		cmocka_unit_test(malformed_documents_are_refused),
		cmocka_unit_test(only_printable_ascii_is_accepted),
		cmocka_unit_test(process_has_no_more_qps_than_numbers),
		cmocka_unit_test(memory_is_limited),
		cmocka_unit_test(many_mrs_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
