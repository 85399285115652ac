/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/show/text_table.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rxe/types.h>

#include "common/printable.h"

static void format_bytes(char text[TABLE_CELL], json_int_t n)
{
	static const char units[] = "kMGTPE";
	double v = (double)n / 1000;
	size_t i = 0;

	if (n < 1000) {
		snprintf(text, TABLE_CELL, "%lld B", (long long)n);
		return;
	}
	for (; v >= 999.95 && units[i + 1]; i++)
		v /= 1000;
	snprintf(text, TABLE_CELL, "%.1f %cB", v, units[i]);
}

static void format_duration(char text[TABLE_CELL], json_int_t s)
{
	long long min = s / 60, h = min / 60;

	if (h >= 24)
		snprintf(text, TABLE_CELL, "%lld d %02lld h", h / 24, h % 24);
	else if (h)
		snprintf(text, TABLE_CELL, "%lld h %02lld min", h, min % 60);
	else if (min)
		snprintf(text, TABLE_CELL, "%lld min %02lld s", min, (long long)s % 60);
	else
		snprintf(text, TABLE_CELL, "%lld s", (long long)s);
}

static void format_access(char text[TABLE_CELL], json_int_t access)
{
	static const struct {
		json_int_t bit;
		const char *name;
	} names[] = {
		{URXE_ACCESS_LOCAL_WRITE, "local-write"},
		{URXE_ACCESS_REMOTE_WRITE, "remote-write"},
		{URXE_ACCESS_REMOTE_READ, "remote-read"},
		{URXE_ACCESS_REMOTE_ATOMIC, "atomic"},
		{URXE_ACCESS_MW_BIND, "window"},
		{URXE_ACCESS_ZERO_BASED, "zero-based"},
		{URXE_ACCESS_ON_DEMAND, "on-demand"},
		{URXE_ACCESS_FLUSH_GLOBAL, "flush"},
		{URXE_ACCESS_FLUSH_PERSISTENT, "flush-persistent"},
	};
	size_t i, len = 0;

	snprintf(text, TABLE_CELL, "local-read");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(access & names[i].bit))
			continue;
		len = strlen(text);
		snprintf(text + len, TABLE_CELL - len, ",%s", names[i].name);
	}
}

static void format_sum(char text[TABLE_CELL], json_t *object)
{
	json_int_t sum = 0;
	const char *key;
	json_t *value;

	/* Unsigned: numbers from another process may overflow. */
	json_object_foreach(object, key, value)
	{
		sum = (json_int_t)((uint64_t)sum + (uint64_t)json_integer_value(value));
	}
	snprintf(text, TABLE_CELL, "%lld", (long long)sum);
}

static void format_text(char text[TABLE_CELL], const char *value)
{
	printable_copy(text, TABLE_CELL, value);
}

static void format_integer(char text[TABLE_CELL], json_int_t n, enum text_table_format format)
{
	switch (format) {
	case TABLE_BYTES: format_bytes(text, n); break;
	case TABLE_QPN: snprintf(text, TABLE_CELL, "0x%06llx", (unsigned long long)n); break;
	case TABLE_HEX: snprintf(text, TABLE_CELL, "0x%llx", (unsigned long long)n); break;
	case TABLE_ACCESS: format_access(text, n); break;
	case TABLE_DURATION: format_duration(text, n); break;
	default: snprintf(text, TABLE_CELL, "%lld", (long long)n);
	}
}

static json_t *find_value(const json_t *row, const char *key)
{
	const char *dot = strchr(key, '.');
	char outer[TABLE_CELL];

	if (!dot)
		return json_object_get(row, key);
	snprintf(outer, sizeof(outer), "%.*s", (int)(dot - key), key);
	return json_object_get(json_object_get(row, outer), dot + 1);
}

void text_table_cell(const json_t *row, const struct text_table_column *column,
		     char text[TABLE_CELL])
{
	json_t *value = find_value(row, column->key);

	if (json_is_object(value) && column->format == TABLE_SUM)
		format_sum(text, value);
	else if (json_is_integer(value) && column->format != TABLE_TEXT)
		format_integer(text, json_integer_value(value), column->format);
	else if (!value && column->format == TABLE_TALLY)
		format_text(text, "0");
	else if (json_is_boolean(value) && column->format == TABLE_TEXT)
		format_text(text, json_is_true(value) ? "yes" : "no");
	else if (json_is_string(value) && column->format == TABLE_TEXT)
		format_text(text, json_string_value(value));
	else
		format_text(text, "-");
}

/* Returns the number of characters: continuation bytes of UTF-8 have no width. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void print_cell(FILE *out, const char *text, int width,
		       const struct text_table_column *column, bool last)
{
	int pad = width - width_of(text);

	if (column->format != TABLE_TEXT && column->format != TABLE_ACCESS)
		fprintf(out, "%*s%s", pad, "", text);
	else
		fprintf(out, "%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "\n" : "  ", out);
}

void text_table_print(FILE *out, const json_t *rows, const struct text_table_column *columns,
		      size_t n)
{
	int widths[TABLE_COLUMNS];
	char text[TABLE_CELL];
	json_t *row;
	size_t i, c;

	assert(n <= TABLE_COLUMNS);
	if (!json_array_size(rows))
		return;
	for (c = 0; c < n; c++) {
		widths[c] = width_of(columns[c].title);
		json_array_foreach(rows, i, row)
		{
			text_table_cell(row, &columns[c], text);
			if (width_of(text) > widths[c])
				widths[c] = width_of(text);
		}
	}
	for (c = 0; c < n; c++)
		print_cell(out, columns[c].title, widths[c], &columns[c], c == n - 1);
	json_array_foreach(rows, i, row)
	{
		for (c = 0; c < n; c++) {
			text_table_cell(row, &columns[c], text);
			print_cell(out, text, widths[c], &columns[c], c == n - 1);
		}
	}
}
