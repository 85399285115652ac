/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/state_reader.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <pvrdma/pvrdma.h>
#include <rxe/counters.h>
#include <vnic/inbox.h>

#include "urxed/report/counter_row.h"
#include "vm/host/switch_link.h"

/* Units that a row costs in addition to its members: for the object, and for the members that urxe
 * show adds (pid, process, port, path). */
#define ROW_UNITS 16

struct reader {
	const char *at, *end;
	const char *error; /* NULL = none yet */
	struct state_limits *limits;
	char text[STATE_TEXT_MAX + 1]; /* the string that read_text has read last */
};

/* Notes an error, unless there was one before. Returns false. */
static bool fail(struct reader *r, const char *error)
{
	if (!r->error)
		r->error = error;
	return false;
}

static bool spend_units(struct reader *r, uint32_t units)
{
	if (r->limits->units < units)
		return fail(r, "it is more than urxe show keeps");
	r->limits->units -= units;
	return true;
}

/* --- Tokens. The document is flat enough for a reader without recursion. */

static void skip_space(struct reader *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
		r->at++;
}

static bool next_is(struct reader *r, char c)
{
	skip_space(r);
	return r->at < r->end && *r->at == c;
}

static bool take_char(struct reader *r, char c)
{
	if (!next_is(r, c))
		return false;
	r->at++;
	return true;
}

static bool expect_char(struct reader *r, char c)
{
	return take_char(r, c) || fail(r, "it is not valid JSON");
}

/*
 * Whether another element of an object or array follows. The caller has taken the opening bracket;
 * this function takes the comma, or the closing bracket `close`. Also returns false after an error.
 */
static bool next_element(struct reader *r, char close, bool first)
{
	if (r->error || take_char(r, close))
		return false;
	return first || expect_char(r, ',');
}

/* Takes the backslash of an escape. Returns false if neither a quotation mark nor a backslash
 * follows: processes escape only these two. */
static bool take_escape(struct reader *r)
{
	r->at++;
	return (r->at < r->end && (*r->at == '"' || *r->at == '\\')) ||
	       fail(r, "it has an escape that no process writes");
}

/* Reads a string into r->text. It must be printable ASCII, as processes write nothing else. Returns
 * false after it has noted an error. */
static bool read_text(struct reader *r)
{
	size_t len = 0;

	if (!expect_char(r, '"'))
		return false;
	for (; r->at < r->end && *r->at != '"'; r->at++) {
		if (*r->at == '\\' && !take_escape(r))
			return false;
		if (*r->at < ' ' || *r->at > '~')
			return fail(r, "it has a character that no process writes");
		if (len == STATE_TEXT_MAX)
			return fail(r, "it has a text that is too long");
		r->text[len++] = *r->at;
	}
	r->text[len] = '\0';
	return expect_char(r, '"');
}

static json_t *read_number(struct reader *r)
{
	uint64_t value = 0;
	const char *first = r->at;

	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
		if (r->at - first == 18) {
			fail(r, "it has a number that is too large");
			return NULL;
		}
		value = 10 * value + (uint64_t)(*r->at - '0');
	}
	if (r->at == first) {
		fail(r, "it has a value that no process writes");
		return NULL;
	}
	return json_integer((json_int_t)value);
}

static bool take_word(struct reader *r, const char *word)
{
	size_t len = strlen(word);

	skip_space(r);
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len))
		return false;
	r->at += len;
	return true;
}

/* Reads a number, text, true, false or null. Returns NULL after an error. */
static json_t *read_scalar(struct reader *r)
{
	if (next_is(r, '"'))
		return read_text(r) ? json_string(r->text) : NULL;
	if (take_word(r, "true"))
		return json_true();
	if (take_word(r, "false"))
		return json_false();
	if (take_word(r, "null"))
		return json_null();
	return read_number(r);
}

/* Reads a member's name and the colon. Returns false after it has noted an error. */
static bool read_name(struct reader *r, char name[STATE_TEXT_MAX + 1])
{
	if (!read_text(r))
		return false;
	memcpy(name, r->text, sizeof(r->text));
	return expect_char(r, ':');
}

/* --- Rows */

enum kind { KIND_NUMBER = 1, KIND_TEXT = 2, KIND_BOOL = 4, KIND_NULL = 8 };

struct member {
	const char *name;
	int kinds; /* the allowed kinds, as bits of enum kind */
};

static const struct member qp_members[] = {
	{"qpn", KIND_NUMBER},
	{"type", KIND_TEXT},
	{"state", KIND_TEXT},
	{"path_mtu", KIND_NUMBER},
	{"sgid_index", KIND_NUMBER},
	{"dgid", KIND_TEXT | KIND_NULL},
	{"dmac", KIND_TEXT | KIND_NULL},
	{"dest_qpn", KIND_NUMBER | KIND_NULL},
	{"rq_psn", KIND_NUMBER},
	{"sq_psn", KIND_NUMBER},
	{"sends", KIND_NUMBER},
	{"packets", KIND_NUMBER},
	{"receives", KIND_NUMBER},
	{"retries", KIND_NUMBER},
	{"rnr_retries", KIND_NUMBER},
	{"timeout", KIND_NUMBER},
	{"rate_limit", KIND_NUMBER},
	{"direct", KIND_BOOL},
	{"memory", KIND_BOOL},
	{"uplink", KIND_BOOL},
	{"sends_by_socket", KIND_NUMBER},
	{"receives_by_socket", KIND_NUMBER},
	{"hca", KIND_BOOL},
	{"way_reason", KIND_TEXT | KIND_NULL},
	{NULL, 0},
};

static const struct member mr_members[] = {
	{"key", KIND_NUMBER},    {"pd", KIND_NUMBER},     {"iova", KIND_TEXT},
	{"length", KIND_NUMBER}, {"access", KIND_NUMBER}, {NULL, 0},
};

static int kind_of(const json_t *value)
{
	if (json_is_integer(value))
		return KIND_NUMBER;
	if (json_is_string(value))
		return KIND_TEXT;
	return json_is_boolean(value) ? KIND_BOOL : KIND_NULL;
}

/* Adds a member if its name is known. Ignores other members, because a later urxe may write more.
 * Returns false after an error. */
static bool keep_member(struct reader *r, json_t *row, const struct member *known, const char *name,
			json_t *value)
{
	for (; known->name; known++) {
		if (strcmp(known->name, name))
			continue;
		if (!(known->kinds & kind_of(value)))
			return fail(r, "it has a member of a wrong type");
		return spend_units(r, 1) && !json_object_set(row, name, value);
	}
	return true;
}

const char *state_counter_meaning(const char *name)
{
	static const struct counter_row others[] = {
		VNIC_BYPASS_LIST(COUNTER_ROW) PVRDMA_COUNTER_LIST(COUNTER_ROW)
			SWITCH_LINK_COUNTER_LIST(COUNTER_ROW)};
	size_t i;

	for (i = 0; i < URXE_DROP_COUNT; i++)
		if (!strcmp(name, urxe_drop_name((enum urxe_drop)i)))
			return urxe_drop_text((enum urxe_drop)i);
	for (i = 0; i < URXE_EVENT_COUNT; i++)
		if (!strcmp(name, urxe_event_name((enum urxe_event)i)))
			return urxe_event_text((enum urxe_event)i);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i].name))
			return others[i].text;
	return NULL;
}

static bool read_counter(struct reader *r, json_t *counters)
{
	char name[STATE_TEXT_MAX + 1];
	json_t *value = read_name(r, name) ? read_scalar(r) : NULL;
	bool done = value != NULL;

	if (value && !json_is_integer(value))
		done = fail(r, "a counter in it is not a number");
	if (done && state_counter_meaning(name))
		done = spend_units(r, 1) && !json_object_set(counters, name, value);
	json_decref(value);
	return done;
}

static bool read_counters(struct reader *r, json_t *into)
{
	json_t *counters = json_object();
	bool first;

	if (json_object_set_new(into, "counters", counters) || !expect_char(r, '{'))
		return fail(r, "no memory");
	for (first = true; next_element(r, '}', first); first = false)
		if (!read_counter(r, counters))
			break;
	return !r->error;
}

/* Reads a member of a row. If row is NULL, checks the member but does not keep it. Returns false
 * after an error. */
static bool read_member(struct reader *r, json_t *row, const struct member *known)
{
	char name[STATE_TEXT_MAX + 1];
	json_t *value;
	bool done;

	if (!read_name(r, name))
		return false;
	if (known == qp_members && !strcmp(name, "counters"))
		return read_counters(r, row);
	value = read_scalar(r);
	done = value && (!row || keep_member(r, row, known, name, value));
	json_decref(value);
	return done;
}

static bool read_row(struct reader *r, json_t *row, const struct member *known)
{
	bool first;

	if (!expect_char(r, '{'))
		return false;
	for (first = true; next_element(r, '}', first); first = false)
		if (!read_member(r, row, known))
			return fail(r, "no memory");
	return !r->error;
}

static bool read_qps(struct reader *r, json_t *state)
{
	json_t *rows = json_object_get(state, "qps"), *row;
	bool first;

	for (first = true; next_element(r, ']', first); first = false) {
		if (json_array_size(rows) >= r->limits->qps)
			return fail(r, "it has more queue pairs than the process has numbers");
		row = spend_units(r, ROW_UNITS) ? json_object() : NULL;
		if (!row || json_array_append_new(rows, row) || !read_row(r, row, qp_members))
			return fail(r, "no memory");
	}
	return !r->error;
}

static bool read_mrs(struct reader *r, json_t *state)
{
	json_t *rows = json_object_get(state, "mrs"), *row;
	json_int_t n = 0;
	bool first;

	for (first = true; next_element(r, ']', first); first = false, n++) {
		row = NULL;
		if (json_array_size(rows) < STATE_MRS_MAX) {
			row = spend_units(r, ROW_UNITS) ? json_object() : NULL;
			if (!row || json_array_append_new(rows, row))
				return fail(r, "no memory");
		}
		if (!read_row(r, row, mr_members))
			return false;
	}
	json_object_set_new(state, "n_mrs", json_integer(n));
	return !r->error;
}

/* --- The document */

static bool read_part(struct reader *r, json_t *state)
{
	char name[STATE_TEXT_MAX + 1];
	json_t *value;

	if (!read_name(r, name))
		return false;
	if (!strcmp(name, "counters"))
		return read_counters(r, state);
	if (!strcmp(name, "qps"))
		return expect_char(r, '[') && read_qps(r, state);
	if (!strcmp(name, "mrs"))
		return expect_char(r, '[') && read_mrs(r, state);
	value = read_scalar(r);
	json_decref(value);
	return value;
}

static bool read_document(struct reader *r, json_t *state)
{
	bool first;

	if (!expect_char(r, '{'))
		return false;
	for (first = true; next_element(r, '}', first); first = false)
		if (!read_part(r, state))
			return fail(r, "it is not valid JSON");
	skip_space(r);
	return !r->error && (r->at == r->end || fail(r, "it is not valid JSON"));
}

json_t *state_read(const char *text, size_t len, struct state_limits *limits,
		   char error[STATE_ERROR])
{
	struct reader r = {.at = text, .end = text + len, .limits = limits};
	json_t *state = json_pack("{s:[], s:[], s:{}, s:i}", "qps", "mrs", "counters", "n_mrs", 0);

	if (state && read_document(&r, state))
		return state;
	json_decref(state);
	snprintf(error, STATE_ERROR, "%s", r.error ? r.error : "no memory");
	return NULL;
}
