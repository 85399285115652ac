/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * urxe show prints a report (urxed/report/report.h) through this. The report may contain anything:
 * what is printed has no characters that control a terminal.
 */
#ifndef URXE_URXE_REPORT_VIEW_H
#define URXE_URXE_REPORT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

/* The name of topic number i; NULL behind the last. */
const char *report_view_topic(size_t i);
bool report_view_is_topic(const char *topic);
/* Whether a known topic needs what processes tell. */
bool report_view_asks_processes(const char *topic);

/* Tables for people; topic NULL = an overview. `all`: counters that are 0 too, and meanings. */
void report_view_print(FILE *out, const json_t *report, const char *topic, bool all);
/* The report, or the topic's member of it alone. */
void report_view_json(FILE *out, const json_t *report, const char *topic);

#endif
