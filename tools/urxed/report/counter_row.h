/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names and meanings of counters, as rows of the lists that the counters' owners define. */
#ifndef URXE_URXED_REPORT_COUNTER_ROW_H
#define URXE_URXED_REPORT_COUNTER_ROW_H

struct counter_row {
	const char *name;
	const char *text; /* what the counter counts */
};

#define COUNTER_ROW(id, name, text) {name, text},
/* A table of rows as two arguments: the table and its length. */
#define COUNTER_ROWS(rows) rows, sizeof(rows) / sizeof((rows)[0])

#endif
