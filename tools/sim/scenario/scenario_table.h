/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tables of scenarios whose results are compared (urxe sim --table). */
#ifndef URXE_SIM_SCENARIO_SCENARIO_TABLE_H
#define URXE_SIM_SCENARIO_SCENARIO_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/scenario/scenario.h"

/* X(identifier, name, meaning) */
#define SCENARIO_TABLE_LIST(X)                                                                 \
	X(loss, "goodput over loss, with and without strict go-back-N peers")                  \
	X(incast, "64 hosts send to one: queue, fairness and goodput, with and without DCQCN") \
	X(blackout, "longest absence of a migrating host that its peers survive")              \
	X(pause, "pause of a migrated host's traffic, minus the host's absence, by --announce")

/*
 * Prints the table of that name in Markdown. All tables take the seed and the probe time of
 * `given`; loss and incast also take its messages and time. False: no such table, or a simulation
 * failed unexpectedly; the table shows the failure.
 */
bool scenario_table_run(const char *name, const struct scenario *given, FILE *to);
bool scenario_table_exists(const char *name);
/* Prints all tables, a line each. */
void scenario_table_help(FILE *to);

#endif
