/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints a report (urxed/report/report.h) as tables or JSON, for cmd_show.c. Parts of it come from
 * other processes, so any member may be missing or have another type. The output contains no
 * characters that control a terminal.
 */
#ifndef URXE_URXE_SHOW_REPORT_PRINT_H
#define URXE_URXE_SHOW_REPORT_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

/* Returns the name of topic number i; NULL: there is no such topic. */
const char *report_print_topic(size_t i);
bool report_print_is_topic(const char *topic);
/* Does the topic, which must exist, need the states that the daemon asks processes for? */
bool report_print_asks_processes(const char *topic);

/* Prints tables; topic NULL = an overview. `all`: also counters that are 0, and meanings. */
void report_print_text(FILE *out, const json_t *report, const char *topic, bool all);
/* Prints the whole report as JSON, or only the topic's member. */
void report_print_json(FILE *out, const json_t *report, const char *topic);

#endif
