/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints a JSON array of objects as aligned columns of text, for report_print.c. */
#ifndef URXE_URXE_SHOW_TEXT_TABLE_H
#define URXE_URXE_SHOW_TEXT_TABLE_H

#include <stdio.h>

#include <jansson.h>

#define TABLE_COLUMNS 24

enum text_table_format {
	TABLE_TEXT,     /* as it is; true and false as "yes" and "no" */
	TABLE_COUNT,    /* an integer */
	TABLE_TALLY,    /* an integer; 0 if it is missing */
	TABLE_BYTES,    /* as "1.5 GB", powers of 1000 */
	TABLE_QPN,      /* 0x and six digits */
	TABLE_HEX,      /* 0x and its digits */
	TABLE_SUM,      /* of the integers of an object */
	TABLE_ACCESS,   /* bits of enum urxe_access, as "local-write,remote-read" */
	TABLE_DURATION, /* seconds, as "2 h 05 min" */
};

struct text_table_column {
	const char *title;
	const char *key; /* a member; with a dot, a member of a member: "counters.tx_frames" */
	enum text_table_format format;
};

/*
 * Writes the value of a row's column as text; "-" if it is missing (with TABLE_TALLY "0"), null, or
 * not of the format's type. '?' replaces characters that control a terminal.
 */
#define TABLE_CELL 128 /* bytes; longer text is cut */
void text_table_cell(const json_t *row, const struct text_table_column *column,
		     char text[TABLE_CELL]);

/*
 * Prints a title line and a line for each element of rows, text to the left and numbers to the
 * right, in n columns, at most TABLE_COLUMNS. Prints nothing if rows is empty.
 */
void text_table_print(FILE *out, const json_t *rows, const struct text_table_column *columns,
		      size_t n);

#endif
